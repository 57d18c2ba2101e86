// Ends the program with one sentence and exit code 2 if the processor lacks an instruction set, in place of an illegal instruction later.
// The check runs before all static initialisers with default priority: those that register parts are compiled like the rest of the library.
#include <stdio.h>
#include <unistd.h>

#include "fl_core/processor/processor.h"

namespace {

__attribute__((constructor(101))) void check_processor() {
  char missing[1024];
  if (fl_missing_instruction_sets(missing, sizeof missing) == 0) return;
  const char* way_out = fl_is_portable_build() ? "" : "take the portable build (cmake --preset portable), or ";
  fprintf(stderr, "fedbits: the program %s; %sbuild it from source on this machine (cmake --preset release)\n", missing, way_out);
  _exit(2);  // no destructor of the library may run either
}

}  // namespace
