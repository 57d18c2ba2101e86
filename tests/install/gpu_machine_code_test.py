"""What scripts/gpu_machine_code.py counts, of a listing as cuobjdump prints it: the inner loop, its useful instructions, and its shortest pass.

    python3 tests/install/gpu_machine_code_test.py SOURCE
"""
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "scripts"))
import gpu_machine_code  # noqa: E402  (it lies in scripts/)

failed = []

# The outer loop begins at 0x10. It holds a loop without products at 0x30 and the loop of the products at 0x50, where a branch can skip two
# instructions.
LISTING = """
Fatbin elf code:
================
arch = sm_90
\t\tFunction : _Z4plainv
        /*0000*/                   MOV R1, c[0x0][0x28] ;                 /* 0x00000a0000017a02 */
        /*0010*/                   BRA 0x10;                              /* 0xfffffff000007947 */
\t\tFunction : _Z8multiplyv
        /*0000*/                   LDC R1, c[0x0][0x28] ;                 /* 0x00000a00ff017b82 */
        /*0010*/                   S2R R3, SR_TID.X ;                     /* 0x0000000000037919 */
        /*0020*/                   FFMA R9, R9, R8, R7 ;                  /* 0x0000000809097223 */
        /*0030*/                   LDG.E R4, desc[UR4][R2.64] ;           /* 0x0000000402047981 */
        /*0040*/              @!P1 BRA 0x30 ;                             /* 0xfffffffc00f89947 */
        /*0050*/                   LDS.128 R4, [R2] ;                     /* 0x0000000002047984 */
        /*0060*/               @P0 BRA 0x90 ;                             /* 0x0000000000080947 */
        /*0070*/                   STS [R2], R4 ;                         /* 0x0000000402007388 */
        /*0080*/                   IADD3 R2, R2, 0x1, RZ ;                /* 0x0000000102027810 */
        /*0090*/                   OPERATION R8, R4, R6, R8 ;             /* 0x000000060408723c */
        /*00a0*/                   OPERATION R8, R5, R7, R8 ;             /* 0x000000070508723c */
        /*00b0*/               @P2 BRA 0x50 ;                             /* 0xfffffffc00642947 */
        /*00c0*/               @P3 BRA 0x10 ;                             /* 0xfffffffc00642947 */
        /*00d0*/                   EXIT ;                                 /* 0x000000000000794d */
"""


def expect(found, wanted, text):
    if found != wanted:
        failed.append(f"{text}: {found}, not {wanted}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "a.cu.o").write_text("")
    program = folder / "cuobjdump"
    for operation, kind, cycles in (("FFMA", "FFMA", 1), ("HMMA.16816.F32.BF16", "BF16", 4), ("HMMA.1684.F32.TF32", "TF32", 2), ("HMMA.1688.F32.TF32", "TF32", 4)):
        (folder / "listing").write_text(LISTING.replace("OPERATION", operation))
        program.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "-sass -arch sm_90" ] && cat "{folder}/listing"\n')
        program.chmod(0o755)
        rows = list(gpu_machine_code.products(folder, str(program), "sm_90"))
        expect(rows, [("_Z8multiplyv", kind, 2, 7, 2 * cycles / 7, min(1.0, 2 * cycles / 5))], operation)
for line in failed:
    print(f"FAILED: {line}")
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
