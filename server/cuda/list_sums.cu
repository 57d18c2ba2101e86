#include <algorithm>

#include "fl_core/ops/cuda/plan.cuh"
#include "server/cuda/list_sums.cuh"

namespace fl::cuda {
namespace {

constexpr int kListThreads = 512;
constexpr std::size_t kMostPositions = 8192, kLeastPositions = 512;  // of a part, unless its sums take more memory than there is
constexpr std::size_t kAhead = 8;                                    // clients whose entries are on their way at a time

// Positions begin .. begin+count-1 are a part.
struct ListParts {
  std::size_t positions;  // of each part but the last
  std::size_t count;
  std::size_t length;
};

// The first of `count` ascending positions that is not below `bound`. Entries are expected to be spread evenly: where one is looked at, the
// difference tells how far to go on, and from there the search goes by steps that double.
[[nodiscard]] __device__ std::size_t first_by_density(const std::uint32_t* index, std::size_t count, std::size_t bound,
                                                      std::size_t length) {
  constexpr std::size_t kStep = 8;  // positions of a sector of memory
  if (count == 0 || bound == 0) return 0;
  const double density = static_cast<double>(count) / static_cast<double>(length), last = static_cast<double>(count - 1);
  auto at = static_cast<std::size_t>(fmin(density * static_cast<double>(bound), last));
  const double to_go = density * (static_cast<double>(bound) - static_cast<double>(index[at]));
  at = static_cast<std::size_t>(fmin(fmax(static_cast<double>(at) + to_go, 0.0), last)) / kStep * kStep;
  std::size_t low = 0, high = count;
  if (index[at] < bound) {
    low = at + 1;
    for (std::size_t step = kStep; low + step - 1 < count; step *= 2) {
      if (index[low + step - 2] >= bound) {
        high = low + step - 2;
        break;
      }
      low += step - 1;
    }
  } else {
    high = at;
    for (std::size_t step = kStep; high > 0; step *= 2) {
      const std::size_t before = high > step ? high - step : 0;
      if (index[before] < bound) {
        low = before + 1;
        break;
      }
      high = before;
    }
  }
  return low + first_from(index + low, high - low, bound);
}

// first: [parts + 1, num_messages], where the entries of each part begin in each list; behind the last part where they end. A warp takes a
// beginning of 32 clients, a block neighbouring ones, so that it reads a client's description once for all of them.
template <class T>
__global__ void find_entries(const SentMessage<T>* message, std::size_t num_messages, ListParts parts, std::uint32_t* first) {
  constexpr std::size_t kWarps = kBlockThreads / kWarp;
  const std::size_t across = (num_messages + kWarp - 1) / kWarp, pieces = across * (parts.count / kWarps + 1);
  for (std::size_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const std::size_t client = piece % across * kWarp + threadIdx.x % kWarp, part = piece / across * kWarps + threadIdx.x / kWarp;
    if (client >= num_messages || part > parts.count) continue;
    const SentMessage<T>& sent = message[client];
    std::size_t at = 0;
    if (sent.form != Form::nothing)
      at = part == parts.count
               ? sent.num_sent
               : first_by_density(static_cast<const std::uint32_t*>(sent.numbers), sent.num_sent, part * parts.positions, parts.length);
    first[part * num_messages + client] = static_cast<std::uint32_t>(at);
  }
}

// The entries that the clients of a group add to a part.
template <class T>
struct ListGroup {
  const std::uint32_t* index[kSumGroup];  // of the first entry
  const T* value[kSumGroup];
  double weight[kSumGroup];
  std::uint32_t count[kSumGroup];
};

template <class T>
__device__ void open_lists(const SentMessage<T>* message, std::size_t count, const std::uint32_t* first, std::size_t num_messages,
                           ListGroup<T>& group) {
  const unsigned m = threadIdx.x;
  if (m >= kSumGroup) return;
  group.count[m] = 0;
  if (m >= count) return;
  const std::uint32_t from = first[m], to = first[num_messages + m];
  if (from >= to) return;
  const SentMessage<T>& sent = message[m];
  group.index[m] = static_cast<const std::uint32_t*>(sent.numbers) + from;
  group.value[m] = sent.second + from;
  group.weight[m] = sent.weight;
  group.count[m] = to - from;
}

// total += what the clients of a group bring, one after another. No two entries of a client meet; the threads wait for each other before
// the next one's.
template <class T>
__device__ void add_entries(const ListGroup<T>& group, std::size_t begin, double* total) {
  for (std::size_t from = 0; from < kSumGroup; from += kAhead) {
    std::uint32_t at[kAhead];
    T c[kAhead];
    FL_UNROLL
    for (std::size_t a = 0; a < kAhead; ++a) {
      if (threadIdx.x >= group.count[from + a]) continue;
      at[a] = group.index[from + a][threadIdx.x];
      c[a] = group.value[from + a][threadIdx.x];
    }
    FL_UNROLL
    for (std::size_t a = 0; a < kAhead; ++a) {
      const std::size_t m = from + a;
      if (group.count[m] == 0) continue;
      __syncthreads();
      if (threadIdx.x < group.count[m]) total[at[a] - begin] += group.weight[m] * static_cast<double>(c[a]);
      for (std::size_t i = threadIdx.x + kListThreads; i < group.count[m]; i += kListThreads)
        total[group.index[m][i] - begin] += group.weight[m] * static_cast<double>(group.value[m][i]);
    }
  }
  __syncthreads();
}

// A block per part, with all its sums in shared memory.
template <class T>
__global__ void __launch_bounds__(kListThreads) add_lists(const SentMessage<T>* message, std::size_t num_messages, ListParts parts,
                                                          const std::uint32_t* first, std::size_t levels, double* sum) {
  FL_SHARED_MEMORY(double, total);
  __shared__ ListGroup<T> group;
  const GroupSums sums(total + parts.positions, levels, nullptr, parts.positions);
  const std::size_t groups = (num_messages + kSumGroup - 1) / kSumGroup;
  for (std::size_t part = blockIdx.x; part < parts.count; part += gridDim.x) {
    const std::size_t begin = part * parts.positions, left = parts.length - begin;
    const std::size_t count = left < parts.positions ? left : parts.positions;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t from = g * kSumGroup, in_group = num_messages - from;
      for (std::size_t i = threadIdx.x; i < count; i += kListThreads) total[i] = 0;
      open_lists(message + from, in_group, first + part * num_messages + from, num_messages, group);
      __syncthreads();
      add_entries(group, begin, total);
      if (g + 1 == groups) break;
      for (std::size_t i = threadIdx.x; i < count; i += kListThreads) sums.add(i, g, total[i]);
    }
    for (std::size_t i = threadIdx.x; i < count; i += kListThreads) sum[begin + i] = sums.with_last(i, groups - 1, total[i]);
  }
}

// Bytes of shared memory that a block may ask for on the GPU in use.
[[nodiscard]] std::size_t most_shared_memory() {
  static const std::size_t most = [] {
    int bytes = 0;
    FL_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    return static_cast<std::size_t>(bytes);
  }();
  return most;
}

}  // namespace

template <class T>
std::size_t list_part_length(std::size_t num_messages, std::size_t most_sent, std::size_t length) {
  const std::size_t levels = GroupSums::levels((num_messages + kSumGroup - 1) / kSumGroup);
  const std::size_t room = (most_shared_memory() - sizeof(ListGroup<T>) - 1024) / sizeof(double);
  // Parts are large, unless the sums of all levels have no room, or a client has more entries of one than there are threads.
  std::size_t positions = kMostPositions;
  while ((1 + levels) * positions > room || (positions > kLeastPositions && most_sent * positions > std::size_t{kListThreads} * length))
    positions /= 2;
  return positions;
}

template <class T>
void sum_lists(const Exec& exec, const SentMessage<T>* message, std::size_t num_messages, std::size_t most_sent, std::size_t length,
               double* sum) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t levels = GroupSums::levels((num_messages + kSumGroup - 1) / kSumGroup);
  const std::size_t positions = list_part_length<T>(num_messages, most_sent, length);
  const ListParts parts{positions, (length + positions - 1) / positions, length};
  auto* first = frame.take<std::uint32_t>((parts.count + 1) * num_messages);
  Launch(exec, "find_entries", blocks_for(num_messages, static_cast<int>(kWarp)) * (parts.count * kWarp / kBlockThreads + 1))(
      find_entries<T>, message, num_messages, parts, first);
  Launch(exec, "add_lists", parts.count, kListThreads)
      .with_shared((1 + levels) * positions * sizeof(double))(add_lists<T>, message, num_messages, parts, first, levels, sum);
}

template std::size_t list_part_length<float>(std::size_t, std::size_t, std::size_t);
template std::size_t list_part_length<double>(std::size_t, std::size_t, std::size_t);
template void sum_lists<float>(const Exec&, const SentMessage<float>*, std::size_t, std::size_t, std::size_t, double*);
template void sum_lists<double>(const Exec&, const SentMessage<double>*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace fl::cuda
