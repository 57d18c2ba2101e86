#include "net/server/expected_answers.hpp"

#include <algorithm>

namespace fl::net {

std::optional<Expected> answer_in(const wire::Header& header) {
  switch (header.kind_case()) {
    case wire::Header::kUpdate:
      return Expected{Expected::Kind::update, header.update().round(), header.update().phase(), header.update().client()};
    case wire::Header::kNorms: return Expected{Expected::Kind::norms, header.norms().round(), 0, header.norms().client()};
    case wire::Header::kPartialSums:
      return Expected{Expected::Kind::sums, header.partial_sums().round(), header.partial_sums().order(), header.partial_sums().client()};
    case wire::Header::kMemory: return Expected{Expected::Kind::memory, header.memory().round(), 0, header.memory().client()};
    default: return std::nullopt;
  }
}

void ExpectedAnswers::expect(std::vector<Expected> frames, std::span<const std::uint8_t> required) {
  asked_ = std::move(frames);
  answers_ = {.frames = std::vector<Frame>(asked_.size()), .arrived = std::vector<std::uint8_t>(asked_.size(), 0), .completed = {}};
  places_.clear();
  clients_.clear();
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    places_.emplace(asked_[i], i);
    const auto [found, is_new] = clients_.try_emplace(asked_[i].client, Client{.place = clients_.size()});
    Client& client = found->second;
    ++client.missing;
    client.is_required = required.empty() || required[i] != 0;
  }
  num_missing_ = static_cast<std::size_t>(std::ranges::count_if(clients_, [](const auto& one) { return one.second.is_required; }));
  answers_.completed.resize(clients_.size());
  num_complete_ = 0;
  is_open_ = true;
}

ExpectedAnswers::Verdict ExpectedAnswers::take(const Expected& what, Frame frame) {
  const auto found = places_.find(what);
  if (found == places_.end()) return Verdict::unexpected;
  if (answers_.arrived[found->second] != 0) return Verdict::repeated;
  if (!is_open_) return Verdict::unexpected;
  answers_.arrived[found->second] = 1;
  answers_.frames[found->second] = std::move(frame);
  Client& client = clients_[what.client];
  if (--client.missing == 0) {
    ++num_complete_;
    answers_.completed[client.place] = Clock::now();
    if (client.is_required) --num_missing_;
  }
  return Verdict::accepted;
}

Answers ExpectedAnswers::finish() {
  is_open_ = false;
  Answers answers{.frames = std::move(answers_.frames), .arrived = answers_.arrived, .completed = answers_.completed};
  answers_.frames.clear();
  return answers;
}

std::vector<Expected> ExpectedAnswers::unanswered(bool all) const {
  std::vector<Expected> missing;
  for (std::size_t i = 0; i < asked_.size(); ++i)
    if (answers_.arrived[i] == 0 && (all || clients_.at(asked_[i].client).is_required)) missing.push_back(asked_[i]);
  return missing;
}

bool ExpectedAnswers::is_owed(Expected::Kind kind, std::uint32_t first, std::uint32_t last) const {
  const Expected end{kind, round(), 0, last};
  for (auto at = places_.lower_bound({kind, round(), 0, first}); at != places_.end() && at->first <= end; ++at)
    if (answers_.arrived[at->second] == 0 && clients_.at(at->first.client).is_required) return true;
  return false;
}

void ExpectedAnswers::give_up(std::uint32_t client) {
  const auto found = clients_.find(client);
  if (found == clients_.end() || !found->second.is_required) return;
  found->second.is_required = false;
  if (found->second.missing > 0) --num_missing_;
}

}  // namespace fl::net
