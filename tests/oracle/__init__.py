"""The differential tester: random programs run here and in another implementation, and compared.

The oracle is the Python named by PYJX_ORACLE_PYTHON, a process of its own.
"""
