// Which instruction sets the build needs, and which of them this processor lacks.
//
// The check has to run on processors that the rest of the program cannot run on. So the files of this folder include headers of C alone,
// and everything in them that computes is compiled for the oldest processors of the architecture (cmake/FedbitsProcessor.cmake).
#pragma once

#include <stddef.h>

// One instruction set, the bit of CPUID that reports it, and the registers that the operating system has to save for it.
struct FlInstructionSet {
  const char* name;
  unsigned leaf, subleaf;
  char output;         // the register of CPUID's answer: 'a', 'b', 'c' or 'd'
  unsigned bit;        // in that register
  unsigned registers;  // bits of XCR0; 0: those that every 64-bit system saves
};

// The instruction sets that the compiler may use in this build. The last entry has no name.
extern const FlInstructionSet kNeededInstructionSets[];

// Writes what is missing as the beginning of a sentence: "was built for x86-64-v3, and this processor lacks AVX2 and FMA". Returns the
// number of missing instruction sets; 0 leaves an empty text. Names that do not fit into `size` bytes are cut off.
int fl_missing_instruction_sets(char* text, size_t size);

// True if the program was built for the level of the portable build, so that no other package helps.
bool fl_is_portable_build();
