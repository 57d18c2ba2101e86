// Sums of lists of values, of clients of whom each sends one.
//
//   sum_j = sum_i weight_i c_ij   for all positions j, 0 where no list has an entry
//
// A block owns a part of the positions, as large as its shared memory allows: a client's entries of a part begin and end within sectors of
// memory, which several parts read. A kernel before finds where the entries of each part begin.
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"
#include "server/cuda/sent_message.cuh"

namespace fl::cuda {

// message: [num_messages] on the device, of Form::list or nothing; most_sent: of any. sum: [length] on the device, all of it is written.
template <class T>
void sum_lists(const Exec& exec, const SentMessage<T>* message, std::size_t num_messages, std::size_t most_sent, std::size_t length,
               double* sum);

// Positions of every part but the last.
template <class T>
[[nodiscard]] std::size_t list_part_length(std::size_t num_messages, std::size_t most_sent, std::size_t length);

extern template std::size_t list_part_length<float>(std::size_t, std::size_t, std::size_t);
extern template std::size_t list_part_length<double>(std::size_t, std::size_t, std::size_t);
extern template void sum_lists<float>(const Exec&, const SentMessage<float>*, std::size_t, std::size_t, std::size_t, double*);
extern template void sum_lists<double>(const Exec&, const SentMessage<double>*, std::size_t, std::size_t, std::size_t, double*);

}  // namespace fl::cuda
