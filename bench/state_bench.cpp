// Client state beyond memory: rounds per second as clients come to have state, and as the population grows at a fixed cohort.
//
//   state_bench population          1,000, 10,000 and 100,000 clients, 100 in a round: state in memory, and in 2 GiB (or SIZE) with a file
//   state_bench touch [MIB [ROUNDS [CLIENTS [PARAMETERS]]]]  100,000 clients x 50,000 float32 (20 GB of state), 100 in a round, in 2 GiB
//                                   (0: no bound); windows of a tenth. With 2,000 clients in 128 MiB the file stays in the kernel's copy:
//                                   no disk is measured. The last line compares the memory with the rows of the clients that took part.
//   state_bench disk                explicit reads and writes, a mapped file, and reads past the kernel's copy, on random rows
//
// The problem is made to cost as little as it can beside the state: a sparse row of 8 features per client, one gradient each, Top-1%.
// Peak RSS is the process's, mapped files included; the copy of the file that the kernel keeps is not in it. Page files lie in the working
// folder: run it where there is room for 20 GB. Each row of a table is a process of its own.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/run_scenario.hpp"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Returns the processor time of all threads: the cost of rounds even if other programs keep the processor busy. It excludes disk waits.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the same without the kernel's part: copies to and from the file.
double user_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// In a process of its own, so that the peak is its own.
void in_child(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::printf("(failed: status %d)\n", status);
}

// One row per client: a label and 8 of P features.
std::string write_rows(std::size_t clients, std::size_t P) {
  const std::string path = "state_bench.rows";
  std::ofstream out(path);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < clients; ++i) {
    std::vector<std::size_t> features;
    for (int k = 0; k < 8; ++k) features.push_back(1 + random() % P);
    if (i == 0) features.push_back(P);  // so that there are P of them
    std::ranges::sort(features);
    features.erase(std::unique(features.begin(), features.end()), features.end());
    out << (i % 2 == 0 ? "1" : "-1");
    for (const std::size_t feature : features) out << ' ' << feature << ":1";
    out << '\n';
  }
  return path;
}

std::string scenario(std::size_t clients, const std::string& rows, const std::string& participation, const std::string& evaluate) {
  return "name='bench'\nrounds=1000000\nprecision='float32'\n[data]\npath='./" + rows +
         "'\ntest='none'\n[partition]\nkind='contiguous'\nclients=" + std::to_string(clients) +
         "\n[model]\nkind='logistic_regression'\nbias=false\nl2=0\n[local]\nkind='gradient'\nlearning_rate=0.1\n[participation]\n" +
         "clients=100\n" + participation +
         "\n[compressor.up]\nkind='top_k'\nratio=0.01\nunit='step'\n[feedback.up]\nkind='ef14'\n[evaluate]\n" +
         "optimum=false\ngradient='never'\ntrain_loss=false\n" + evaluate + "\n";
}

fl::MachineOptions machine(std::uint64_t memory_bytes) {
  return {.threads = 1, .paging = {.memory_bytes = memory_bytes, .file = {.folder = "."}}};
}

// ---- population ----------------------------------------------------------------------------------------------------------------------

void population_row(std::size_t clients, std::size_t P, std::uint64_t memory_bytes, const char* evaluate, const char* what) {
  in_child([&] {
    const std::string rows = write_rows(clients, P);
    fl::test::OneRun<float> run(scenario(clients, rows, "kind='uniform'", evaluate), machine(memory_bytes));
    std::uint32_t round = 0;
    const auto play = [&](std::uint32_t rounds) {
      run.play(round + 1, round + rounds);
      round += rounds;
    };
    const std::uint32_t rounds = P > 10000 ? 8 : 20;
    play(rounds);
    std::vector<double> seconds, processor;
    for (int i = 0; i < 11; ++i) {
      const auto start = Clock::now();
      const double before = processor_seconds();
      play(rounds);
      seconds.push_back(seconds_since(start) / rounds);
      processor.push_back((processor_seconds() - before) / rounds);
    }
    std::printf("%7zu clients x %6zu parameters  %-36s %8.1f rounds/s  %8.1f per processor second  peak %6.0f MB\n", clients, P, what,
                1 / median(seconds), 1 / median(processor), peak_mb());
  });
}

void population() {
  for (const std::size_t P : {std::size_t{1000}, std::size_t{50000}})
    for (const std::size_t clients : {std::size_t{1000}, std::size_t{10000}, std::size_t{100000}}) {
      if (P == 1000 || clients < 100000) population_row(clients, P, 0, "every=1000000", "in memory");
      if (P == 1000) population_row(clients, P, 0, "every=1", "in memory, with |mean e| each round");
      population_row(clients, P, P == 1000 ? 2 * kMiB : 128 * kMiB, "every=1000000",
                     P == 1000 ? "in 2 MiB and a file" : "in 128 MiB and a file");
    }
  fs::remove("state_bench.rows");
}

// ---- all of 20 GB --------------------------------------------------------------------------------------------------------------------

void touch(std::uint64_t memory_bytes, std::uint32_t rounds, std::uint32_t clients, std::size_t P) {
  in_child([&] {
    const std::string rows = write_rows(clients, P);
    fl::test::OneRun<float> run(scenario(clients, rows, "kind='cyclic'\norder='shuffled'", "every=1000000"), machine(memory_bytes));
    const std::uint32_t window = std::max(1u, rounds / 10);
    const double start_mb = peak_mb();
    double first_mb = 0;  // after the first window
    std::printf("start: peak %.0f MB\n", start_mb);
    for (std::uint32_t round = 0; round < rounds; round += window) {
      const auto start = Clock::now();
      const double before = processor_seconds(), user_before = user_seconds();
      run.play(round + 1, round + window);
      std::printf(
          "rounds %5u to %5u  clients with state %6u  %7.2f rounds/s  %7.2f per processor second  %7.2f per second of user time  "
          "peak %6.0f MB\n",
          round + 1, round + window, std::min(clients, 100 * (round + window)), window / seconds_since(start),
          window / (processor_seconds() - before), window / (user_seconds() - user_before), peak_mb());
      std::fflush(stdout);
      if (round == 0) first_mb = peak_mb();
    }
    const auto mb_of = [P](std::uint32_t met) { return static_cast<double>(met) * static_cast<double>(P * sizeof(float)) / kMiB; };
    const std::uint32_t first = std::min(clients, 100 * window), met = std::min(clients, 100 * rounds);
    std::printf("rows of %u clients: %.1f MB; peak above the start %.1f MB: %.3f of them; after the first window %.3f of the new rows\n",
                met, mb_of(met), peak_mb() - start_mb, (peak_mb() - start_mb) / mb_of(met),
                (peak_mb() - first_mb) / (mb_of(met) - mb_of(first)));
  });
  fs::remove("state_bench.rows");
}

// ---- ways to a file --------------------------------------------------------------------------------------------------------------------

// 100 random rows of 200 KB read and written per round, of a file of 2 GB.
void disk() {
  constexpr std::size_t kRow = 49 * 4096, kRows = 10000, kPerRound = 100;
  constexpr int kRounds = 30;
  const char* path = "state_bench.disk";
  auto* buffer = static_cast<char*>(std::aligned_alloc(4096, kRow));
  std::memset(buffer, 1, kRow);
  for (const std::string way : {"pread and pwrite", "mapped", "past the kernel's copy (O_DIRECT)"}) {
    in_child([&] {
      const int file = ::open(path, O_RDWR | O_CREAT | O_TRUNC | (way.starts_with("past") ? O_DIRECT : 0), 0644);
      for (std::size_t i = 0; i < kRows; ++i)
        if (::pwrite(file, buffer, kRow, static_cast<off_t>(i * kRow)) != static_cast<ssize_t>(kRow)) ::_exit(1);
      auto* mapped =
          way == "mapped" ? static_cast<char*>(::mmap(nullptr, kRows * kRow, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) : nullptr;
      std::mt19937 random(7);
      const auto start = Clock::now();
      for (std::size_t i = 0; i < kRounds * kPerRound; ++i) {
        const std::size_t at = random() % kRows * kRow;
        if (mapped != nullptr) {
          std::memcpy(buffer, mapped + at, kRow);
          std::memcpy(mapped + at, buffer, kRow);
          ::madvise(mapped + at, kRow, MADV_DONTNEED);
        } else if (::pread(file, buffer, kRow, static_cast<off_t>(at)) < 0 || ::pwrite(file, buffer, kRow, static_cast<off_t>(at)) < 0) {
          ::_exit(1);
        }
      }
      std::printf("%-36s %7.1f ms per round of %zu rows read and written\n", way.c_str(), 1e3 * seconds_since(start) / kRounds, kPerRound);
    });
    fs::remove(path);
  }
  std::free(buffer);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "population";
  if (what == "touch")
    touch((argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2048) * kMiB, argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : 1500,
          argc > 4 ? static_cast<std::uint32_t>(std::atoi(argv[4])) : 100000, argc > 5 ? std::strtoull(argv[5], nullptr, 10) : 50000);
  else if (what == "disk")
    disk();
  else
    population();
}
