// Asks the processor, with CPUID, and the operating system, with XGETBV, for the instruction sets that the build needs.
#include <stdio.h>
#include <string.h>

#include "fl_core/processor/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

namespace {

enum class Lack { none, processor, system };

// Returns the registers that the operating system saves when it switches between threads (XCR0), or 0 if it says nothing of them.
unsigned saved_registers() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool processor_has(const FlInstructionSet& set) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(set.leaf, 0, &a, &b, &c, &d)) return false;
  if (set.subleaf > 0) {  // the answer to subleaf 0 begins with the number of the last one
    if (set.subleaf > a) return false;
    __get_cpuid_count(set.leaf, set.subleaf, &a, &b, &c, &d);
  }
  const unsigned answer = set.output == 'a' ? a : set.output == 'b' ? b : set.output == 'c' ? c : d;
  return (answer >> set.bit) & 1u;
}

Lack lack_of(const FlInstructionSet& set) {
  if (!processor_has(set)) return Lack::processor;
  return (saved_registers() & set.registers) == set.registers ? Lack::none : Lack::system;
}

int count(Lack lack) {
  int number = 0;
  for (const FlInstructionSet* set = kNeededInstructionSets; set->name; ++set) number += lack_of(*set) == lack;
  return number;
}

// Appends the names as a list, "AVX2, BMI2 and FMA".
void append_names(char* text, size_t size, Lack lack) {
  const int all = count(lack);
  int written = 0;
  for (const FlInstructionSet* set = kNeededInstructionSets; set->name; ++set) {
    if (lack_of(*set) != lack) continue;
    const char* between = written == 0 ? " " : written == all - 1 ? " and " : ", ";
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", between, set->name);
    ++written;
  }
}

}  // namespace

int fl_missing_instruction_sets(char* text, size_t size) {
  text[0] = '\0';
  const int lacking = count(Lack::processor), disabled = count(Lack::system);
  if (lacking > 0) {
    snprintf(text, size, "was built for " FL_LEVEL_NAME ", and this processor lacks");
    append_names(text, size, Lack::processor);
  } else if (disabled > 0) {
    snprintf(text, size, "was built for " FL_LEVEL_NAME ", and this operating system does not save the registers of");
    append_names(text, size, Lack::system);
  }
  return lacking + disabled;
}

#else

int fl_missing_instruction_sets(char* text, size_t size) {
  snprintf(text, size, "%s", "");
  return 0;
}

#endif

bool fl_is_portable_build() { return strcmp(FL_LEVEL_NAME, FL_PORTABLE_LEVEL) == 0; }
