// Hangs while it is loaded, and so does a process that it starts and that keeps all open files.
#include <unistd.h>

namespace {
int wait_for_ever() {
  (void)::fork();
  for (;;) ::pause();
}
const int kNever = wait_for_ever();
}  // namespace
