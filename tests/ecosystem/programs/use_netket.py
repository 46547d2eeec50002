"""The ground state of a chain of spins with netket: exact, and by variational Monte Carlo."""

import json

import jax
import netket as nk

graph = nk.graph.Chain(length=6)
space = nk.hilbert.Spin(s=0.5, N=6)
hamiltonian = nk.operator.Ising(hilbert=space, graph=graph, h=1.0)
machine = nk.models.RBM(alpha=1, param_dtype=float)
state = nk.vqs.FullSumState(space, machine, seed=0)
energy, gradient = state.expect_and_grad(hamiltonian)
driver = nk.VMC(hamiltonian, nk.optimizer.Sgd(0.05), variational_state=state,
                preconditioner=nk.optimizer.SR(diag_shift=0.1))
driver.run(10, out=nk.logging.RuntimeLog(), show_progress=False)
print(json.dumps({
    "exact": [float(v) for v in nk.exact.lanczos_ed(hamiltonian, k=2)],
    "start": float(energy.mean.real), "end": float(state.expect(hamiltonian).mean.real),
    "gradient": float(sum(abs(g).sum() for g in jax.tree.leaves(gradient)))}))
