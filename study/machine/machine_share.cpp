#include "study/machine/machine_share.hpp"

#include <algorithm>

#include "fl_core/memory/usable_cores.hpp"
#include "study/machine/memory.hpp"

namespace fl {

int jobs_for(int asked, int threads) {
  const int cores = usable_cores();
  return asked > 0 ? asked : std::max(1, cores / threads);
}

StatePaging paging_of(const std::string& memory, const std::string& folder) {
  StatePaging paging;
  paging.file.folder = folder;
  if (!memory.empty()) paging.memory_bytes = parse_bytes("--state-memory", memory);
  return paging;
}

}  // namespace fl
