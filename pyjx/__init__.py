"""pyjx"""
