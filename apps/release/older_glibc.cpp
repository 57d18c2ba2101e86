// Symbols of glibc up to 2.36 that Debian 12's compiler and libraries need, for a program that has to start with glibc 2.28 (FL_OLD_GLIBC).
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define FL_HIDDEN __attribute__((visibility("hidden")))

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* found;
};

// Called for each loaded object; returns 1 for the one that holds the address.
int take_object(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  bool is_inside = false;
  const ElfW(Phdr)* frames = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
    if (part.p_type != PT_LOAD || search->address < begin || search->address >= begin + part.p_memsz) continue;
    is_inside = true;
    search->found->dlfo_map_start = reinterpret_cast<void*>(begin);
    search->found->dlfo_map_end = reinterpret_cast<void*>(begin + part.p_memsz);
  }
  if (!is_inside || frames == nullptr) return 0;
  search->found->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

constexpr int64_t kNanoseconds = 1000000000;

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNanoseconds + time.tv_nsec; }

// Waits until the same moment by the clock of the system. If that is set meanwhile the wait is too short or too long; libstdc++ looks at
// its own clock after it.
int wait_by_system_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  timespec now, system_now;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &system_now);
  const int64_t moment = nanoseconds(system_now) + nanoseconds(*until) - nanoseconds(now);
  const timespec system_until{moment / kNanoseconds, moment % kNanoseconds};
  return pthread_cond_timedwait(condition, mutex, &system_until);
}

}  // namespace

// The versions before 2.29, which differ in how they report errors and not in what they compute.
__asm__(".symver fl_older_exp, exp@GLIBC_2.2.5");
__asm__(".symver fl_older_exp2, exp2@GLIBC_2.2.5");
__asm__(".symver fl_older_log2, log2@GLIBC_2.2.5");
__asm__(".symver fl_older_log, log@GLIBC_2.2.5");
__asm__(".symver fl_older_pow, pow@GLIBC_2.2.5");

extern "C" {

double fl_older_exp(double);
double fl_older_exp2(double);
double fl_older_log(double);
double fl_older_log2(double);
double fl_older_pow(double, double);
FL_HIDDEN double exp(double x) { return fl_older_exp(x); }
FL_HIDDEN double exp2(double x) { return fl_older_exp2(x); }
FL_HIDDEN double log(double x) { return fl_older_log(x); }
FL_HIDDEN double log2(double x) { return fl_older_log2(x); }
FL_HIDDEN double pow(double x, double y) { return fl_older_pow(x, y); }

// glibc 2.30: std::condition_variable waits with it. Where glibc has it, it is used.
FL_HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static const auto own = reinterpret_cast<ClockWait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  return own ? own(condition, mutex, clock, until) : wait_by_system_clock(condition, mutex, clock, until);
}

// glibc 2.35: finds the tables with which libgcc unwinds the stack at `address`. Returns 0 if there are any.
FL_HIDDEN int _dl_find_object(void* address, dl_find_object* found) {
  *found = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), found};
  return dl_iterate_phdr(&take_object, &search) == 1 ? 0 : -1;
}

// glibc 2.36: libstdc++ makes std::random_device of it.
FL_HIDDEN uint32_t arc4random() {
  uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) abort();
  return value;
}

// glibc 2.32: whether there is one thread only, so that counters need not be atomic. "No" is always right.
FL_HIDDEN char __libc_single_threaded = 0;
}
