"""The text of a rod's CUDA kernels: `rod.cu` with `grid.cu` and the rod's constants in front."""

from importlib import resources
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.rod import rosenbrock
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.stepper import BELIEVED
from softcr_models.rod.stiffening import SOFTEST, STIFFEST, USUAL_CURVATURE
from softcr_models.rod.twists import LARGEST_TURN

WARP = 32
LEAST_LANES = 8
"""Of a candidate: six of them work along the rod, one for each component of a twist."""


def lanes_of(rod: CosseratRod) -> int:
    """Lanes of a warp that share a candidate: the least power of two with one for each row.

    Raises:
        UserError: the rod has more rows than a warp has lanes, or something that is not computed on
            a GPU: a force at the tip, obstacles, motors, a fluid that moves or whose drag is not
            linear.
    """
    rows, name = int(rod.grid.first_row[-1]), rod.robot.name
    if rows > WARP:
        raise UserError(
            f"robot {name}: {rod.total_intervals} intervals in {rod.segments} segments are "
            f"{rows} rows: a GPU takes {WARP} at most; allowed on the device cpu"
        )
    if rod.obstacles is not None or rod.body.forces:
        raise UserError(
            f"robot {name}: the rod on a GPU has no obstacles and no force at the tip; allowed on "
            "the device cpu"
        )
    if rod.grid.stiffens > 1:
        raise UserError(
            f"robot {name}: neo_hookean: unknown to the rod on a GPU; allowed on the device cpu"
        )
    if rod.fittings is not None and rod.fittings.moving_fluid:
        raise UserError(
            f"robot {name}: the rod on a GPU knows linear drag in still fluid alone; allowed on "
            "the device cpu"
        )
    if rod.robot.motors:
        raise UserError(
            f"robot {name}: the rod on a GPU knows no motors that wind tendons; allowed on the "
            "device cpu"
        )
    return max(LEAST_LANES, 1 << (rows - 1).bit_length())


def source_of(rod: CosseratRod, dtype: type[np.floating]) -> str:
    """The whole text, which computes in `dtype`; CUDA's compiler takes it, and a host's.

    Raises:
        UserError: see `lanes_of`.
    """
    lanes, body, grid, fittings = lanes_of(rod), rod.body, rod.grid, rod.fittings
    rows = int(grid.first_row[-1])
    tendons = 0 if fittings is None else len(fittings.tendon_inputs)
    double = dtype is np.float64
    numbers = {
        "DOUBLE": int(double),
        "LANES": lanes,
        "THREADS": WARP,
        "BLOCKS": _blocks(fittings is not None, double),
        "ROWS": rows,
        "INTERVALS": rod.total_intervals,
        "SEGMENTS": rod.segments,
        "STATES": rod.state_size,
        "INPUTS": rod.input_size,
        "PARAMETERS": len(rod.parameters),
        "FITTED": int(fittings is not None),
        "TENDONS": tendons,
        "VARYING": 0 if fittings is None else int(fittings.varying),
        "IN_FLUID": 0 if fittings is None else int(fittings.in_fluid),
        "STIFFENS": int(grid.stiffens),
        "PAYLOADS": int(body.payloads),
        "PAYLOAD_ROW": int(grid.payload_row),
        "BENDINGS": int(body.bendings),
        "SUBINTERVALS": int(grid.gravity_subintervals),
    }
    ends = sum(1 << int(row) - 1 for row in grid.first_row[1:])
    scalars = {
        "STRAIN_POINT": grid.strain_point,
        "PAYLOAD_LEVER": grid.payload_lever,
        "BASE_HEIGHT": body.base_height,
        "TIP_CAP_LENGTH": body.tip_cap_length,
        "STIFFEST": STIFFEST,
        "SOFTEST": SOFTEST,
        "PER_SQUARED_CURVATURE": 1.0 / USUAL_CURVATURE**2,
        "GAMMA": rosenbrock.GAMMA,
        "LENGTH": rod.robot.length,
        "LASTING": rosenbrock.LASTING,
        "SQUARED_TURN": LARGEST_TURN**2,
        "SQUARED_BELIEVED": BELIEVED**2,
    }
    reals: dict[str, Any] = {
        "INTERVAL_LENGTH": grid.interval_length,
        "BENDING_INERTIA": grid.bending_inertia,
        "TORSION_INERTIA": grid.torsion_inertia,
        "PER_BENDING_INERTIA": 1.0 / grid.bending_inertia,
        "PER_TORSION_INERTIA": 1.0 / grid.torsion_inertia,
        "GRAVITY": grid.gravity,
        "COMPLIANCE": body.compliance,
        "BENDING_SHARE": body.bending_share,
        "RELAXATION": body.relaxation,
        "LINE_DENSITY": body.line_density,
        "TIP_SHARE": body.tip_share,
        "ACTUATION": body.actuation,
        "STAGE_POINT": rosenbrock.STAGE_POINT,
        "STAGE_COUPLING": rosenbrock.STAGE_COUPLING,
        "INCREMENT": rosenbrock.INCREMENT,
        "ERROR": rosenbrock.ERROR,
    }
    integers: dict[str, Any] = {"FIRST_ROW": grid.first_row, "PULLS": body.pulls}
    if fittings is not None:
        reals |= {
            "ADJOINT": fittings.adjoint,
            "TRANSLATION": fittings.translation,
            "BODY_MASS": fittings.mass,
            "DRAG": fittings.drag,
            "DISPLACED": fittings.displaced,
        }
        if tendons:
            reals["TENDON_OFFSETS"] = fittings.tendon_offsets
            integers["TENDON_REACHES"] = fittings.tendon_reaches
            integers["TENDON_INPUTS"] = fittings.tendon_inputs
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    lines += [
        f"typedef {'double' if double else 'float'} real;",
        text("grid.cu"),
        f"constexpr unsigned long long ENDS = {ends}ull;",
    ]
    lines += [f"constexpr real {name} = real({_number(value)});" for name, value in scalars.items()]
    lines += [table("real", name, values) for name, values in reals.items()]
    lines += [table("int", name, values) for name, values in integers.items()]
    return "\n".join(lines) + "\n" + text("rod.cu")


def text(name: str) -> str:
    """A text of this folder."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _number(value: Any) -> str:
    return repr(float(value))


def table(kind: str, name: str, values: Any) -> str:
    """A line that declares numbers as a constant of kernels, which must not be none."""
    flat = np.asarray(values).ravel()
    told = (str(int(value)) if kind == "int" else f"{kind}({_number(value)})" for value in flat)
    return f"TABLE {kind} {name}[] = {{{', '.join(told)}}};"


def _blocks(fitted: bool, double: bool) -> int:
    """Of a warp each, that a multiprocessor is to have registers for: 128, 168 or 255 a thread."""
    if double:
        return 4
    return 12 if fitted else 16
