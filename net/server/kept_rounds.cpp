#include "net/server/kept_rounds.hpp"

#include <map>
#include <memory>

namespace fl::net {

namespace {

using Piece = std::shared_ptr<const Bytes>;

// The pieces of payloads, each once, and their places.
class Pieces {
 public:
  std::uint32_t place_of(const Piece& piece) {
    const auto [found, is_new] = places_.try_emplace(piece.get(), static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(piece);
    return found->second;
  }
  [[nodiscard]] const Piece& at(std::uint32_t place) const {
    if (place >= all_.size()) throw ArchiveError("a frame of a kept round has a payload that is not there");
    return all_[place];
  }
  void persist(Archive& archive) {
    archive.list_of(all_, [&archive](Piece& piece) {
      Bytes bytes = piece == nullptr ? Bytes() : *piece;
      archive.list(bytes);
      if (archive.is_reading()) piece = std::make_shared<const Bytes>(std::move(bytes));
    });
  }

 private:
  std::vector<Piece> all_;
  std::map<const Bytes*, std::uint32_t> places_;
};

void persist_frame(Archive& archive, OutgoingFrame& frame, Pieces& pieces) {
  archive.list(frame.head);
  std::vector<std::uint32_t> places;
  for (const Piece& piece : frame.payload) places.push_back(pieces.place_of(piece));
  archive.list(places);
  if (!archive.is_reading()) return;
  for (const std::uint32_t place : places) frame.payload.push_back(pieces.at(place));
}

void persist_round(Archive& archive, PlayedRound& round, Pieces& pieces) {
  archive.value(round.round);
  archive.value(round.before);
  archive.value(round.num_answers);
  archive.list_of(round.frames, [&](OutgoingFrame& frame) { persist_frame(archive, frame, pieces); });
  round.is_closed = true;
}

void check(const KeptRounds& kept) {
  bool is_right = !kept.clients.empty() && !kept.rounds.empty();
  for (std::size_t i = 0; i < kept.clients.size(); ++i)
    is_right = is_right && kept.clients[i].first <= kept.clients[i].last && (i == 0 || kept.clients[i - 1].last < kept.clients[i].first);
  for (std::size_t i = 0; i < kept.rounds.size(); ++i)
    is_right = is_right && kept.rounds[i].before < kept.rounds[i].round && (i == 0 || kept.rounds[i - 1].round == kept.rounds[i].before);
  if (!is_right) throw ArchiveError("the clients or the numbers of kept rounds do not ascend");
}

}  // namespace

void persist(Archive& archive, std::vector<KeptRounds>& kept) {
  archive.section("kept rounds");
  Pieces pieces;
  for (const KeptRounds& one : kept)
    for (const PlayedRound& round : one.rounds)
      for (const OutgoingFrame& frame : round.frames)
        for (const Piece& piece : frame.payload) static_cast<void>(pieces.place_of(piece));
  pieces.persist(archive);
  archive.list_of(kept, [&](KeptRounds& one) {
    archive.list(one.clients);
    archive.list_of(one.rounds, [&](PlayedRound& round) { persist_round(archive, round, pieces); });
    if (archive.is_reading()) check(one);
  });
}

}  // namespace fl::net
