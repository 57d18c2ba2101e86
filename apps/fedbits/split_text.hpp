// Prints a split as text for a terminal and as a table for programs.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "scenarios/experiment/split_statistics.hpp"

namespace fl {

inline constexpr std::size_t kMostShownSplits = 12;
inline constexpr std::size_t kMostShownClients = 40;

// Draws a summary, then a line per client: rows as a number and a bar, EMD and entropy, and a shade for the share of each class. 80
// columns.
void draw(const SplitStatistics& split, std::ostream& out);

// Writes CSV: split,client,rows,emd,entropy,class,class_rows. There is one line per client and class, or one per client without classes.
void write_csv(std::span<const SplitStatistics> splits, std::ostream& out);

}  // namespace fl
