// The instruction sets that this build may use, as the compiler's macros name them. The file holds data alone, because it is compiled with
// the options of the rest of the library. An instruction set that compilers use only when asked by name has no entry (AES, SHA, RDRAND,
// ...).
#include "fl_core/processor/processor.h"

// Bits of XCR0.
#define FL_YMM 0x6u   // SSE and AVX
#define FL_ZMM 0xe6u  // these, masks and both halves of the registers of AVX-512

const FlInstructionSet kNeededInstructionSets[] = {
#ifdef __SSE3__
    {"SSE3", 1, 0, 'c', 0, 0},
#endif
#ifdef __SSSE3__
    {"SSSE3", 1, 0, 'c', 9, 0},
#endif
#ifdef __SSE4_1__
    {"SSE4.1", 1, 0, 'c', 19, 0},
#endif
#ifdef __SSE4_2__
    {"SSE4.2", 1, 0, 'c', 20, 0},
#endif
#ifdef __SSE4A__
    {"SSE4a", 0x80000001, 0, 'c', 6, 0},
#endif
#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
    {"CMPXCHG16B", 1, 0, 'c', 13, 0},
#endif
#ifdef __LAHF_SAHF__
    {"LAHF", 0x80000001, 0, 'c', 0, 0},
#endif
#ifdef __POPCNT__
    {"POPCNT", 1, 0, 'c', 23, 0},
#endif
#ifdef __LZCNT__
    {"LZCNT", 0x80000001, 0, 'c', 5, 0},
#endif
#ifdef __MOVBE__
    {"MOVBE", 1, 0, 'c', 22, 0},
#endif
#ifdef __BMI__
    {"BMI1", 7, 0, 'b', 3, 0},
#endif
#ifdef __BMI2__
    {"BMI2", 7, 0, 'b', 8, 0},
#endif
#ifdef __TBM__
    {"TBM", 0x80000001, 0, 'c', 21, 0},
#endif
#ifdef __ADX__
    {"ADX", 7, 0, 'b', 19, 0},
#endif
#ifdef __AVX__
    {"AVX", 1, 0, 'c', 28, FL_YMM},
#endif
#ifdef __AVX2__
    {"AVX2", 7, 0, 'b', 5, FL_YMM},
#endif
#ifdef __F16C__
    {"F16C", 1, 0, 'c', 29, FL_YMM},
#endif
#ifdef __FMA__
    {"FMA", 1, 0, 'c', 12, FL_YMM},
#endif
#ifdef __FMA4__
    {"FMA4", 0x80000001, 0, 'c', 16, FL_YMM},
#endif
#ifdef __XOP__
    {"XOP", 0x80000001, 0, 'c', 11, FL_YMM},
#endif
#ifdef __GFNI__
    {"GFNI", 7, 0, 'c', 8, 0},
#endif
#ifdef __AVXVNNI__
    {"AVX-VNNI", 7, 1, 'a', 4, FL_YMM},
#endif
#ifdef __AVXIFMA__
    {"AVX-IFMA", 7, 1, 'a', 23, FL_YMM},
#endif
#ifdef __AVXVNNIINT8__
    {"AVX-VNNI-INT8", 7, 1, 'd', 4, FL_YMM},
#endif
#ifdef __AVXVNNIINT16__
    {"AVX-VNNI-INT16", 7, 1, 'd', 10, FL_YMM},
#endif
#ifdef __AVXNECONVERT__
    {"AVX-NE-CONVERT", 7, 1, 'd', 5, FL_YMM},
#endif
#ifdef __AVX512F__
    {"AVX512F", 7, 0, 'b', 16, FL_ZMM},
#endif
#ifdef __AVX512DQ__
    {"AVX512DQ", 7, 0, 'b', 17, FL_ZMM},
#endif
#ifdef __AVX512CD__
    {"AVX512CD", 7, 0, 'b', 28, FL_ZMM},
#endif
#ifdef __AVX512BW__
    {"AVX512BW", 7, 0, 'b', 30, FL_ZMM},
#endif
#ifdef __AVX512VL__
    {"AVX512VL", 7, 0, 'b', 31, FL_ZMM},
#endif
#ifdef __AVX512IFMA__
    {"AVX512-IFMA", 7, 0, 'b', 21, FL_ZMM},
#endif
#ifdef __AVX512ER__
    {"AVX512ER", 7, 0, 'b', 27, FL_ZMM},
#endif
#ifdef __AVX512VBMI__
    {"AVX512-VBMI", 7, 0, 'c', 1, FL_ZMM},
#endif
#ifdef __AVX512VBMI2__
    {"AVX512-VBMI2", 7, 0, 'c', 6, FL_ZMM},
#endif
#ifdef __AVX512VNNI__
    {"AVX512-VNNI", 7, 0, 'c', 11, FL_ZMM},
#endif
#ifdef __AVX512BITALG__
    {"AVX512-BITALG", 7, 0, 'c', 12, FL_ZMM},
#endif
#ifdef __AVX512VPOPCNTDQ__
    {"AVX512-VPOPCNTDQ", 7, 0, 'c', 14, FL_ZMM},
#endif
#ifdef __AVX512VP2INTERSECT__
    {"AVX512-VP2INTERSECT", 7, 0, 'd', 8, FL_ZMM},
#endif
#ifdef __AVX512FP16__
    {"AVX512-FP16", 7, 0, 'd', 23, FL_ZMM},
#endif
#ifdef __AVX512BF16__
    {"AVX512-BF16", 7, 1, 'a', 5, FL_ZMM},
#endif
#ifdef __APX_F__
    {"APX", 7, 1, 'd', 21, 0x80000u},
#endif
    {nullptr, 0, 0, 'a', 0, 0},
};
