"""The kernels of the NEMPC's search against what its arrays do: compiled for this processor, as
machine code of GPUs, and on a GPU."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from host_module import kernels_on_this_processor  # noqa: F401
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from softcr_control.predictive.device_search import DeviceSearch, source
from softcr_control.predictive.knots import Knots, even_knots, mapped
from softcr_control.predictive.limits import largest_steps, limit_knots
from softcr_control.predictive.polish import cheapest, gauss_newton_proposals
from softcr_models.chain.device_chain import source_of as chain_source
from softcr_models.chain.memory import ChainMemory
from softcr_models.cuda.compiler import compiled
from softcr_models.cuda.module import Module as OnGpu
from softcr_models.errors import UserError


@dataclass
class Case:
    """A search of random size, and its limits as `limit_knots` wants them."""

    seed: int
    segments: int = 1
    channels: int = 3
    shares: tuple = (6, 5, 20)
    first_fixed: bool = False
    slow: float = 0.2  # largest step of a tick / range
    device: str = "cpu"

    def __post_init__(self):
        self.draw = np.random.default_rng(self.seed)
        if self.device == "cuda" and not torch.cuda.is_available():
            pytest.skip("no CUDA device")
        channels = self.channels
        self.knots = Knots(even_knots(self.segments, 8, self.first_fixed), 8, channels)
        self.low = self.draw.uniform(-1e4, 0.0, channels)
        self.high = self.low + self.draw.uniform(3e4, 1e5, channels)
        span = self.high - self.low
        self.steps = largest_steps(self.slow * span * self.knots.spans[:, None], span)
        self.previous = self.low + span * self.draw.uniform(size=channels)
        self.spread, self.mutation = 0.3 * span, 0.04 * span
        device = torch.device(self.device)
        self.generator = torch.Generator(device)
        self.search = DeviceSearch(
            self.shares, self.spread, 0.5, self.low, self.high, self.steps, self.first_fixed,
            self.generator, device,
        )  # fmt: skip

    def tensor(self, values):
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)

    def inside(self, count):
        """(count, K, m) candidates inside the box, some of their numbers on a bound."""
        shape = (count, self.knots.count, self.channels)
        share = self.draw.uniform(-0.1, 1.1, shape).clip(0.0, 1.0)
        found = self.low + (self.high - self.low) * share
        return self.tensor(found).clamp(self.tensor(self.low), self.tensor(self.high))

    def limited(self, knots):
        knots = np.array(knots, float)
        if self.first_fixed:
            knots[:, 0] = self.previous
        limit_knots(knots, self.previous, self.low, self.high, self.steps)
        return knots


cases = st.builds(
    Case,
    seed=st.integers(0, 1000),
    segments=st.integers(1, 4),
    channels=st.integers(1, 5),
    shares=st.sampled_from([(6, 5, 20), (1, 0, 31), (4, 28, 0), (30, 2, 0)]),
    first_fixed=st.booleans(),
    slow=st.sampled_from([0.02, 0.2, 10.0]),
)


@settings(max_examples=60, deadline=None)
@given(case=cases, ticks=st.integers(0, 3))
def test_a_generation_is_bred_as_by_arrays(case, ticks):
    """The same chance, the same candidates: parents some ticks later, strangers, children."""
    knots, (parents, strangers, children) = case.knots, case.shares
    shape, batch = (knots.count, case.channels), sum(case.shares)
    population = case.inside(parents + 2)
    case.generator.manual_seed(case.seed)
    normal = torch.randn((batch, *shape), generator=case.generator).numpy().astype(float)
    mates = torch.randint(parents, (2, children), generator=case.generator).numpy()
    uniform = torch.rand((children, 1 + shape[0], shape[1]), generator=case.generator).numpy()
    later = np.array(mapped(population.numpy().astype(float), knots.to_later(ticks)))
    expected = np.empty((batch, *shape))
    expected[:parents] = later[:parents]
    free = slice(parents, parents + strangers)
    expected[free] = case.previous + case.spread * normal[free]
    mother, father = later[mates[0]], later[mates[1]]
    born = np.where(uniform[:, :1] < 0.5, mother, father)
    changes = np.where(uniform[:, 1:] < 0.5, case.mutation * normal[parents + strangers :], 0.0)
    expected[parents + strangers :] = born + changes
    case.generator.manual_seed(case.seed)
    found = case.search.bred(
        population, case.tensor(case.previous), case.tensor(case.mutation),
        case.tensor(knots.to_later(ticks)), case.tensor(0.0),
    )  # fmt: skip
    np.testing.assert_allclose(found.numpy(), case.limited(expected), atol=0.05)
    case.generator.manual_seed(case.seed)
    anew = case.search.bred(
        population, case.tensor(case.previous), case.tensor(case.mutation), None, case.tensor(1.0)
    )
    strange = case.previous + case.spread * normal
    strange[0] = case.previous
    np.testing.assert_allclose(anew.numpy(), case.limited(strange), atol=0.05)


@settings(max_examples=60, deadline=None)
@given(case=cases, rows=st.integers(1, 40), broken=st.integers(0, 3))
def test_proposals_are_those_of_the_arrays(case, rows, broken):
    """Residuals not quite linear in the knots, minima inside the box and beyond it."""
    search, size = case.search, case.knots.count * case.channels
    assume(search.polishes)
    samples, draw, span = search.samples, case.draw, np.tile(case.high - case.low, case.knots.count)
    population = case.inside(samples)
    points = population.numpy().reshape(samples, -1).astype(float) / span
    offsets = points - points.mean(axis=0) - draw.normal(0.0, 0.3, size)
    residuals = offsets @ draw.normal(size=(size, rows))
    residuals += 0.1 * (offsets @ draw.normal(size=(size, rows))) ** 2
    order = np.argsort((residuals**2).sum(axis=1))
    population, residuals = population[torch.as_tensor(order)], residuals[order].astype(np.float32)
    costs = (residuals.astype(float) ** 2).sum(axis=1)
    costs[len(costs) - broken :] = np.inf
    residuals[len(costs) - broken :] = np.nan
    fitted = cheapest(costs, 0, size)
    assume(len(fitted) > 1 + size)
    expected = gauss_newton_proposals(
        population.numpy()[fitted].astype(float), residuals[fitted].astype(float),
        case.low, case.high,
    )  # fmt: skip
    told = (population, case.tensor(residuals), case.tensor(costs), case.tensor(case.previous))
    found = search.proposals(*map(torch.Tensor.contiguous, told)).numpy()
    np.testing.assert_allclose(found, case.limited(expected), atol=2e-5 * span.max())


def test_where_nothing_can_be_fitted_the_best_is_proposed_again():
    case = Case(0, slow=10.0)
    population = case.inside(case.search.samples)
    residuals = torch.full((case.search.samples, 7), torch.nan)
    residuals[0] = 1.0
    costs = torch.full((case.search.samples,), torch.inf)
    costs[0] = 7.0
    found = case.search.proposals(population, residuals, costs, case.tensor(case.previous))
    expected = np.repeat(case.limited(population.numpy()[:1]), len(found), axis=0)
    np.testing.assert_allclose(found.numpy(), expected, atol=0.01)


def judged(case):
    """Costs, and what is kept, of candidates of which some are broken."""
    draw, batch, ticks = case.draw, sum(case.shares), 4
    knots = case.inside(batch)
    residuals = draw.normal(size=(batch, 11)).astype(np.float32)
    residuals[3, 5], residuals[7, 0], residuals[9, 10] = np.nan, np.inf, 1e30
    poses = draw.normal(size=(batch, ticks, 3, 4))
    tensors = [case.tensor(each) for each in (residuals, poses)]
    costs = case.search.costs(tensors[0])
    ascending, order = torch.sort(costs)
    found = case.search.gathered(order, knots, *tensors, ends=[2, 3, 11], kept=12)
    return knots, residuals, poses, costs, ascending, order, found


def test_costs_are_sums_of_squares_and_the_best_are_kept():
    case = Case(1)
    knots, residuals, poses, costs, _, order, (kept, fitted, best) = judged(case)
    sums = (residuals.astype(float) ** 2).sum(axis=1)
    expected = np.where(np.isfinite(sums) & (sums < 3e38), sums, np.inf)
    np.testing.assert_allclose(costs.numpy(), expected, rtol=1e-6)
    assert set(np.flatnonzero(np.isinf(costs.numpy()))) == {3, 7, 9}
    first = order[0].item()
    np.testing.assert_array_equal(kept.numpy(), knots.numpy()[order[:12].numpy()])
    np.testing.assert_array_equal(fitted.numpy(), residuals[order[:12].numpy()])
    terms = [(residuals[first, part].astype(float) ** 2).sum()
             for part in (slice(0, 2), slice(2, 3), slice(3, 11))]  # fmt: skip
    told = np.concatenate((terms, knots[first].numpy().ravel(), poses[first, :, :, 3].ravel()))
    np.testing.assert_allclose(best.numpy(), told, rtol=1e-6)


@pytest.mark.parametrize("better", [True, False, None])
def test_a_polished_candidate_enters_if_it_costs_less(better):
    """None: none is polished."""
    case = Case(2)
    *_, ascending, _, (kept, _, best) = judged(case)
    polished = None
    if better is not None:
        costs = ascending[:8] + (-0.1 if better else 0.1)
        polished = case.inside(8), costs, best + 1.0
    population, out = torch.empty((6, *kept.shape[1:])), torch.empty_like(best)
    case.search.keep((kept, ascending, best), polished, population, out)
    expected = torch.cat((polished[0][:1], kept[:5])) if better else kept[:6]
    assert torch.equal(population, expected)
    assert torch.equal(out, best + 1.0 if better else best)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_every_kernel_compiles_within_its_bounds(tmp_path, architecture):
    chain = chain_source(ChainMemory(3, (1e3, 3e3, 9e3), (0.1, 10.0)), 3, 1 / 70)
    try:
        made = [compiled(text, architecture, tmp_path) for text in (source(), chain)]
    except UserError as error:
        pytest.skip(str(error))
    kernels = {name: each for module in made for name, each in module.resources.items()}
    assert set(kernels) == {"breed", "costs", "gather", "keep", "polish", "acting"}
    for name, each in kernels.items():
        assert each.registers <= 128, name
        assert each.spilled == 0, name
        assert each.stack == 0, name


def test_where_no_gpu_is_one_line_says_so():
    with pytest.raises(UserError, match="kernels on the device cpu: allowed is a GPU"):
        OnGpu(source(), torch.device("cpu"))


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(("channels", "segments"), [(3, 1), (9, 5)])
def test_a_gpu_says_what_this_processor_says(channels, segments):
    """A generation of given chance, costs, what is kept, and proposals."""
    sizes = {"channels": channels, "segments": segments, "shares": (60, 60, 300)}
    here, there = Case(5, **sizes), Case(5, **sizes, device="cuda")
    population = here.inside(60)
    answers = []
    for case in (here, there):
        previous, mutation = case.tensor(case.previous), case.tensor(case.mutation)
        bred = case.search.bred(case.tensor(population), previous, mutation, None, None)
        assert torch.isfinite(bred).all()
        parents = bred[:60].contiguous()
        residuals = case.tensor(np.random.default_rng(0).normal(size=(60, 90)))
        costs = case.search.costs(residuals)
        ascending, order = torch.sort(costs)
        poses = case.tensor(np.random.default_rng(1).normal(size=(60, 8, 3, 4)))
        kept, fitted, best = case.search.gathered(order, parents, residuals, poses, [30, 90], 60)
        proposals = case.search.proposals(kept, fitted, ascending, previous)
        out, told = torch.empty_like(kept), torch.empty_like(best)
        case.search.keep((kept, ascending, best), (proposals, ascending[:8] - 1.0, best), out, told)
        answers.append([each.cpu().numpy() for each in (parents, costs, kept, fitted, best,
                                                        proposals, out, told)])  # fmt: skip
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1.0)
