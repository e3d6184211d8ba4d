"""Machine code of GPUs: how it is read, its loops, and the estimate of its time."""

import numpy as np
import pytest

from softcr_studies.speed import gpu_code
from softcr_studies.speed.gpu_batches import GpuEffort
from softcr_studies.speed.issue_model import latency_of, walk
from softcr_studies.speed.machine_code import (
    Control,
    disassembled,
    disassembler,
    loop_depths,
    parsed,
)
from softcr_studies.speed.timing import Skipped

LOAD, SPECIAL = latency_of("LDS"), latency_of("MUFU.RCP")


def text_of(*lines):
    """As nvdisasm writes it, of (instruction, control) and labels."""
    told, address = ["\t.section\t.text.k", ".text.k:"], 0
    for line in lines:
        if isinstance(line, str):
            told.append(f"{line}:")
            continue
        instruction, control = line
        told.append(f"        /*{address:04x}*/  {instruction} ;   /* 0x{0:016x} */")
        told.append(f"                      /* 0x{control.word | 0x1F:016x} */")
        address += 16
    return "\n".join(told)


def kernel(*lines):
    return parsed(text_of(*lines))["k"]


COUNTED = (
    ("UMOV UR4, URZ", Control(2)),
    ".L_x_0",
    ("UMOV UR5, URZ", Control(1)),
    ".L_x_1",
    ("FFMA.FTZ R1, R2.reuse, R3, -R1", Control(4)),
    ("UIADD3 UR5, UR5, 0x1, URZ", Control(1)),
    ("UISETP.GE.AND UP1, UPT, UR5, 0x3, UPT", Control(1)),
    ("PLOP3.LUT P2, PT, PT, PT, UP1, 0x80, 0x0", Control(1)),
    ("@!P2 BRA `(.L_x_1)", Control(5)),
    ("UIADD3 UR4, UR4, 0x1, URZ", Control(1)),
    ("ULDC UR6, c[0x0][0x20]", Control(1)),
    ("UISETP.GE.AND UP1, UPT, UR4, UR6, UPT", Control(1)),
    ("PLOP3.LUT P2, PT, PT, PT, UP1, 0x80, 0x0", Control(1)),
    ("@!P2 BRA `(.L_x_0)", Control(5)),
    ("EXIT", Control(3)),
)


def test_instructions_are_read_with_their_control():
    (one, two, end) = kernel(
        ("@!P0 LDS.128 R20, [R3+0xbd0]", Control(2, write=3, wait=5)),
        ("DFMA R2, R4.reuse, R6, R2", Control(15, read=1)),
        ("EXIT", Control(5)),
    )
    assert (one.guard, one.name, one.base) == ("!P0", "LDS.128", "LDS")
    assert one.operands == ("R20", "[R3+0xbd0]")
    assert one.control == Control(2, write=3, wait=5)
    assert two.in_double_precision
    assert two.control == Control(15, read=1)
    assert not end.in_double_precision
    # as of a kernel for sm_90: waits for nothing, writes by scoreboard 2
    assert Control.of(0x000EA2000C1E1900) == Control(1, write=2)


def test_loops_are_found_and_run_as_often_as_their_constants_say():
    program = kernel(*COUNTED)
    assert loop_depths(program) == [0, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0]
    done = walk(program, {0x20: 7})
    assert done.instructions == 1 + 7 * (1 + 3 * 5 + 5) + 1
    assert done.cycles == 2 + 7 * (1 + 3 * 12 + 9) + 3
    assert done.guessed == 0


def test_an_instruction_waits_for_its_scoreboards():
    program = kernel(
        ("LDS R1, [R2]", Control(2, write=0)),
        ("MUFU.RCP R3, R4", Control(1, write=1)),
        ("FADD.FTZ R5, R6, R7", Control(4)),  # waits for nothing
        ("FADD.FTZ R5, R3, R5", Control(4, wait=0b10)),
        ("FADD.FTZ R5, R1, R5", Control(4, wait=0b01)),
        ("EXIT", Control(5)),
    )
    done = walk(program, {})
    assert SPECIAL + 2 + 4 < LOAD
    assert done.cycles == LOAD + 4 + 5
    assert done.waited == {"MUFU": 2 + SPECIAL - 7, "LDS": LOAD - (2 + SPECIAL + 4)}


def test_wide_accesses_to_shared_memory_follow_one_another():
    program = kernel(
        ("LDS.128 R4, [R2]", Control(1, write=0)),
        ("LDS.128 R8, [R2+0x10]", Control(1, write=0)),
        ("FADD.FTZ R5, R4, R8", Control(4, wait=1)),
        ("EXIT", Control(1)),
    )
    assert walk(program, {}).cycles == 4 + 3 + LOAD + 4 + 1  # four cycles each


def test_lanes_that_part_walk_both_sides_and_meet():
    program = kernel(
        ("S2R R0, SR_TID.X", Control(1)),
        ("LOP3.LUT R1, R0, 0x7, RZ, 0xc0, !PT", Control(1)),
        ("ISETP.GT.U32.AND P0, PT, R1, 0x5, PT", Control(1)),
        ("@P0 BRA `(.L_x_1)", Control(1)),
        ("FADD.FTZ R2, R3, R4", Control(1)),  # six lanes of eight
        ("BRA `(.L_x_2)", Control(1)),
        ".L_x_1",
        ("FMUL.FTZ R2, R3, R4", Control(1)),  # the other two
        ".L_x_2",
        ("ISETP.GT.AND P1, PT, R0, 0x20, PT", Control(1)),
        ("@!P1 BRA `(.L_x_3)", Control(1)),
        ("FADD.FTZ R2, R3, R4", Control(1)),  # none
        ".L_x_3",
        ("FSETP.GT.FTZ.AND P1, PT, R2, RZ, PT", Control(1)),
        ("@P1 BRA `(.L_x_2)", Control(1)),
        ("EXIT", Control(1)),
    )
    done = walk(program, {})
    assert [done.counts[k] for k in range(len(program))] == [1] * 9 + [0] + [1] * 3
    assert done.guessed == 1


def test_calls_are_none_of_the_model():
    with pytest.raises(ValueError, match="knows no CALL"):
        walk(kernel(("CALL.REL `(.L_x_0)", Control(1)), ".L_x_0", ("EXIT", Control(1))), {})


@pytest.fixture
def wheels():
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
        disassembler()
    except (ImportError, RuntimeError, Skipped) as error:
        pytest.skip(f"NVRTC or nvdisasm is not here (make setup-cuda): {error}")


def test_the_rollout_is_walked_and_asked(wheels):
    found = gpu_code.code_of("licher2025", "sm_90", 1000, GpuEffort())
    assert found["registers"] <= 128
    assert (found["stack"], found["spills"], found["doubles"]) == (0, 0, 0)
    assert 3000 < found["instructions"] < 4500
    assert 0.05 < found["estimate"] < 0.3
    assert "estimate, not measured" in found["note"]
    other = gpu_code.code_of("licher2025", "sm_80", 1000, GpuEffort())
    assert "estimate" not in other
    assert other["doubles"] == 0


def test_doubles_are_seen(wheels, tmp_path):
    from softcr_models.cuda.compiler import compiled

    text = """extern "C" __global__ void k(double* x, int n, int m) {
        for (int i = 0; i < n; ++i)
            #pragma unroll 1
            for (int j = 0; j < m; ++j) x[i] = x[i] * x[j] + 1.0; }"""
    for architecture in gpu_code.ARCHITECTURES:
        program = disassembled(compiled(text, architecture, tmp_path).cubin)["k"]
        assert gpu_code.doubles_in_time_loop(program) > 0


def test_constants_are_those_of_the_call():
    found = gpu_code.constants(1000)
    assert (found[0x230], found[0x234], found[0x248], found[0x250]) == (1000, 8, 1, 2)
    assert np.uint32(found[0x250]) == gpu_code.SUBSTEPS


def test_without_nvdisasm_the_compilers_figures_remain(wheels, monkeypatch):
    def missing(cubin):
        raise Skipped("nvdisasm is not here (make setup-cuda)")

    monkeypatch.setattr(gpu_code, "disassembled", missing)
    found = gpu_code.code_of("licher2025", "sm_90", 1000, GpuEffort())
    assert found["note"] == "nvdisasm is not here (make setup-cuda)"
    assert "registers" in found
    assert "estimate" not in found
