"""Networks that predict markers: their physics, their gradients, their training, their files."""

import numpy as np
import pytest
import torch
from kit.refused_calls import refused

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.baselines.checkpoint import resume, save, trained
from softcr_papers.valadas2024.learning.baselines.marker_model import MarkerModel, Units
from softcr_papers.valadas2024.learning.baselines.marker_motion import MarkerMotion, marker_motion
from softcr_papers.valadas2024.learning.baselines.networks import (
    NETWORKS,
    CoupledOscillators,
    LagrangianNetwork,
    NeuralODE,
    make_network,
)
from softcr_papers.valadas2024.learning.baselines.presets import preset
from softcr_papers.valadas2024.learning.baselines.training import (
    Stage,
    Trainer,
    TrainingSettings,
    trajectory_error,
)

COORDINATES, TORQUES = 3, 2


@pytest.fixture(autouse=True)
def one_thread_and_seed(one_thread):
    torch.manual_seed(0)


def samples(count: int = 7):
    sizes = COORDINATES, COORDINATES, TORQUES
    return (torch.randn(count, size, dtype=torch.float64) for size in sizes)


def pendulum_motion(frames: int = 60, runs: int = 4) -> MarkerMotion:
    """Damped oscillators of one marker under torques that change every frame, by small steps."""
    random = np.random.default_rng(3)
    torques = random.uniform(-1.0, 1.0, (runs, frames, TORQUES))
    push = np.array([[2.0, 0.0], [0.0, 1.0], [30.0, 20.0]])
    x, v = np.zeros((runs, frames, 3)), np.zeros((runs, frames, 3))
    x[:, 0] = random.uniform(-1.0, 1.0, (runs, 3)) * [0.1, 0.1, 3.0]
    for k in range(frames - 1):
        x[:, k + 1], v[:, k + 1] = x[:, k], v[:, k]
        for _ in range(50):
            a = torques[:, k] @ push.T - 400.0 * x[:, k + 1] - 8.0 * v[:, k + 1]
            v[:, k + 1] += 2e-5 * a
            x[:, k + 1] += 2e-5 * v[:, k + 1]
    return MarkerMotion(x, v, torques, 1e-3)


def test_inertia_of_the_lagrangian_network_is_positive_definite():
    """For inputs and weights far beyond those of a training, too."""
    network = LagrangianNetwork(COORDINATES, TORQUES, width=16).double()
    for scale in (1.0, 30.0):
        with torch.no_grad():
            network.inertia_layers[-1].weight *= scale
        x = scale * torch.randn(50, COORDINATES, dtype=torch.float64)
        inertia = network.inertia(x)
        torch.testing.assert_close(inertia, inertia.mT)
        assert torch.linalg.eigvalsh(inertia).min() > 0.0
    assert torch.linalg.eigvalsh(network.damping()).min() > 0.0


@pytest.mark.parametrize("printed", [False, True])
def test_lagrangian_network_obeys_the_equation_of_euler_and_lagrange(printed):
    """Its acceleration against second derivatives of L by torch, sample by sample."""
    network = LagrangianNetwork(COORDINATES, TORQUES, 16, printed).double()
    x, v, u = samples(4)
    found = network(x, v, u)

    def lagrangian(at, moving):
        inertia = network.inertia(at)
        return 0.5 * moving @ inertia @ moving - network.potential_layers(at)[0]

    def kinetic(at, moving):
        return 0.5 * moving @ network.inertia(at) @ moving

    for k in range(len(x)):
        second = torch.autograd.functional.hessian(lagrangian, (x[k], v[k]))
        slope = torch.autograd.functional.jacobian(lagrangian, (x[k], v[k]))[0]
        if printed:
            slope = slope - torch.autograd.functional.jacobian(kinetic, (x[k], v[k]))[0]
        left = second[1][1] @ found[k] + second[1][0] @ v[k] - slope + network.damping() @ v[k]
        torch.testing.assert_close(left, network.actuation @ u[k])


def test_energy_falls_by_damping_alone():
    lagrangian = LagrangianNetwork(COORDINATES, TORQUES, 16).double()
    oscillators = CoupledOscillators(COORDINATES, TORQUES).double()
    with torch.no_grad():
        for parameter in oscillators.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    x, v, u = samples()
    frame = oscillators.frame
    braked = v @ frame.mT @ oscillators.damping() @ frame
    for network, force in ((lagrangian, v @ lagrangian.damping()), (oscillators, braked)):
        at, moving = x.clone().requires_grad_(), v.clone().requires_grad_()
        by_x, by_v = torch.autograd.grad(network.energy(at, moving).sum(), (at, moving))
        power = (by_x * v).sum(dim=-1) + (by_v * network(x, v, 0.0 * u)).sum(dim=-1)
        torch.testing.assert_close(power, -(v * force).sum(dim=-1))
        assert (power < 0.0).all()


@pytest.mark.parametrize("kind", list(NETWORKS))
def test_gradient_of_the_loss_is_that_of_finite_differences(kind):
    """Along random directions of all weights, through a motion of five steps."""
    trainer = Trainer(kind, pendulum_motion(), TrainingSettings((Stage(5, 1),), 4, 8))
    trainer.model.network.double()
    trainer.prepare()
    parameters = list(trainer.model.network.parameters())
    direction = [torch.randn_like(each) for each in parameters]

    def loss() -> torch.Tensor:
        return trainer.loss(5, np.random.default_rng(1))

    # the bias of a potential does nothing
    slopes = torch.autograd.grad(loss(), parameters, materialize_grads=True)
    exact = sum(float((s * d).sum()) for s, d in zip(slopes, direction, strict=True))
    values, h = [], 1e-6
    for step in (h, -2.0 * h):
        with torch.no_grad():
            for each, move in zip(parameters, direction, strict=True):
                each += step * move
        values.append(float(loss().detach()))
    assert exact == pytest.approx((values[0] - values[1]) / (2.0 * h), rel=1e-5)


class Oscillator(torch.nn.Module):
    """Mean acceleration, over a step, of x'' = -w^2 x, in units."""

    def __init__(self, frequency: float, step: float) -> None:
        super().__init__()
        self.w, self.h = torch.nn.Parameter(torch.tensor(frequency, dtype=torch.float64)), step

    def forward(self, x, v, u):
        turn = self.w * self.h
        return (-self.w * torch.sin(turn) * x + (torch.cos(turn) - 1.0) * v) / self.h + 0.0 * u


def test_motion_of_a_linear_oscillator_is_the_known_one():
    """x0 cos(w t) + v0 sin(w t) / w with w = 2 / 0.05 s; the error falls with the step squared. And
    powers of the matrix of a step, which is known in closed form. Two marker coordinates and an
    angle begin at different places."""
    w, errors, units = 40.0, [], Units((0.1, 0.2, 5.0), 0.05, (1.0, 1.0, 1.0))
    begin, rate = np.array([0.02, -0.1, 1.0]), np.array([0.3, 0.0, -2.0])
    for h in (1e-3, 5e-4):
        model = MarkerModel(Oscillator(2.0, h / units.time), units, h)
        found = model.predict(begin[None], rate[None], np.zeros((1, round(0.2 / h), 3)))[0]
        t = h * np.arange(len(found))[:, None]
        true = np.cos(w * t) * begin + np.sin(w * t) * rate / w
        errors.append(np.abs(found - true).max(axis=0))
        later = np.array([-w * np.sin(w * h), np.cos(w * h)])
        step = np.array([[1.0, 0.5 * h] + 0.5 * h * later, later])
        for k in (0, 1, 7, 200):
            wanted = (np.linalg.matrix_power(step, k) @ [begin, rate])[0]
            np.testing.assert_allclose(found[k], wanted, rtol=0.0, atol=1e-12)
    assert (errors[0] < 1e-3 * np.abs(begin)).all()
    np.testing.assert_allclose(errors[0] / errors[1], 4.0, rtol=0.05)


class Constant(torch.nn.Module):
    """The same acceleration always, in units."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))

    def forward(self, x, v, u):
        return self.value + 0.0 * x


def test_a_motion_that_becomes_infinite_is_nan_from_there_on():
    network = Constant()
    with torch.no_grad():
        network.value[1] = torch.inf
    model = MarkerModel(network, Units((1.0,) * 3, 0.05, (1.0,) * 3), 1e-3)
    found = model.predict(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 4, 3)))[0]
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("kind", list(NETWORKS))
def test_training_lowers_loss_and_error(kind):
    motion = pendulum_motion()
    settings = TrainingSettings((Stage(0, 12), Stage(3, 6)), 4, 16, rate=3e-3, every=6)
    trainer = Trainer(kind, motion, settings)
    loss, error = float(trainer.loss(3, np.random.default_rng(9)).detach()), trainer.check()
    heard = []
    model = trainer.run(heard.append)
    assert float(trainer.loss(3, np.random.default_rng(9)).detach()) < 0.5 * loss
    assert trajectory_error(model, motion) == trainer.best < error
    assert [each.iteration for each in heard] == [6, 12, 18]


def test_a_training_goes_on_where_it_stopped_and_no_other_from_its_file(tmp_path):
    motion, path = pendulum_motion(), tmp_path / "con.safetensors"
    settings = TrainingSettings((Stage(0, 4), Stage(3, 4)), 4, 16, every=2, seed=5)
    whole, first, second = (Trainer("CON", motion, settings) for _ in range(3))
    whole.run()
    for _ in range(5):
        first.iterate()
    first.check()
    assert not resume(second, path)  # there is none
    save(first, path)
    longer = Trainer("CON", motion, TrainingSettings((Stage(0, 3),), 4, 16))
    refused(
        (lambda: resume(longer, path), "its settings differs"),
        (lambda: resume(Trainer("NODE", motion, settings), path), "its network differs"),
    )
    assert resume(second, path)
    assert (second.iteration, second.best) == (5, first.best)
    second.run()
    for name, value in whole.model.network.state_dict().items():
        torch.testing.assert_close(second.model.network.state_dict()[name], value)
    path.write_bytes(b"not weights")
    refused((lambda: resume(second, path), "cannot be read as a training"))


def test_a_finished_training_is_taken_from_its_folder(tmp_path):
    motion, settings = pendulum_motion(), TrainingSettings((Stage(0, 6),), 4, 16, every=3)
    first, heard = trained("CON", motion, settings, tmp_path), []
    again = trained("CON", motion, settings, tmp_path, heard.append)
    assert not heard
    assert trajectory_error(again, motion) == trajectory_error(first, motion)
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]


def test_what_cannot_be_trained_is_refused():
    motion, once = pendulum_motion(), TrainingSettings((Stage(0, 1),))
    long = TrainingSettings((Stage(60, 1),))
    still = MarkerMotion(motion.poses, motion.rates, 0.0 * motion.torques, 1e-3)
    refused(
        (lambda: make_network("MLP", 3, 2), "unknown; allowed are NODE, LNN, CON"),
        (lambda: Trainer("CON", motion, long), "too short for windows of 60 steps"),
        (lambda: TrainingSettings(()), "there must be one or more"),
        (lambda: TrainingSettings((Stage(0, 1),), rate=0.0), "rate 0"),
        (lambda: preset("MLP", "quick", 0), "there is none"),
        (lambda: Trainer("CON", still, once), "a torque never changes"),
    )


def test_networks_have_the_published_sizes():
    """24 inputs and 9 outputs; six layers of width 256, M and U of the LNN each."""
    node, lnn, con = (make_network(kind, 9, 6) for kind in ("NODE", "LNN", "CON"))
    assert isinstance(node, NeuralODE)
    hidden = 4 * (256 * 256 + 256)
    assert count(node) == 24 * 256 + 256 + hidden + 256 * 9 + 9
    both = 2 * (9 * 256 + 256 + hidden) + 256 * 45 + 45 + 256 + 1
    assert count(lnn) == both + 45 + 9 * 6
    inputs = 6 * 16 + 16 + 3 * (16 * 16 + 16) + 16 * 54 + 54
    assert count(con) == 81 + 9 + 3 * 45 + 9 + inputs


def count(network: torch.nn.Module) -> int:
    return sum(each.numel() for each in network.parameters())


def test_rates_of_markers_are_derivatives_of_their_poses():
    from softcr_papers.valadas2024.learning.simulated import simulated_motion
    from softcr_papers.valadas2024.strain.arm import load_strain_arm

    numbers = load_strain_arm("pcs_two_segments").numbers
    starts = np.array([[10.0, 0.05, 0.02, -8.0, 0.0, 0.03]])
    data = simulated_motion(numbers, starts, np.zeros((1, 6, 6)))
    motion = marker_motion(data, numbers.lengths, (8, 14, 20))
    assert motion.poses.shape == motion.rates.shape == (1, 60, 9)
    slopes = (motion.poses[0, 12:] - motion.poses[0, 10:-2]) / 2e-3
    spread = np.abs(motion.rates).max(axis=(0, 1))
    assert np.abs((slopes - motion.rates[0, 11:-1]) / spread).max() < 0.01
    np.testing.assert_array_equal(motion.rates[0, 0], 0.0)
    with pytest.raises(UserError, match="allowed are 0 to 20"):
        marker_motion(data, numbers.lengths, (21,))
