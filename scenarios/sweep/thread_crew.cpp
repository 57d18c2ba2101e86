#include "scenarios/sweep/thread_crew.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick{50}, kBetweenReports{100};

struct Message {
  enum class Kind { started, report, finished, failed, left } kind;
  std::size_t task;
  int worker;
  std::string text;
};

// Messages from workers to the thread that waits for them.
class Mailbox {
 public:
  void put(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    arrived_.notify_one();
  }
  // Returns all messages that have arrived. Waits for the first one up to one tick.
  [[nodiscard]] std::deque<Message> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, kTick, [this] { return !messages_.empty(); });
    return std::exchange(messages_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> messages_;
};

void pass_on(const Message& message, const PoolEvents& events) {
  switch (message.kind) {
    case Message::Kind::started:
      if (events.started) events.started(message.task, message.worker);
      break;
    case Message::Kind::report:
      if (events.progress) events.progress(message.task, message.text);
      break;
    case Message::Kind::finished:
      if (events.finished) events.finished(message.task, message.text);
      break;
    case Message::Kind::failed:
      if (events.failed) events.failed(message.task, message.text);
      break;
    case Message::Kind::left: break;
  }
}

// Joins its threads at destruction, also after an exception.
struct Crew {
  std::atomic<bool>& stopping;
  std::vector<std::thread> threads{};
  ~Crew() {
    stopping = true;
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace

void ThreadCrew::run(std::span<const std::size_t> tasks, const PoolEvents& events) {
  Mailbox mailbox;
  std::atomic<std::size_t> next{0};
  stopping_ = false;
  const auto serve = [&, scope = StopScope::current()](int worker) {
    const StopScope::Helper in_scope(scope);
    while (!stopping_) {
      const std::size_t place = next.fetch_add(1);
      if (place >= tasks.size()) break;
      const std::size_t task = tasks[place];
      mailbox.put({Message::Kind::started, task, worker, ""});
      auto last = Clock::now() - kBetweenReports;
      const auto report = [&](std::string_view text) {
        const auto now = Clock::now();
        if (now - last < kBetweenReports) return;
        last = now;
        mailbox.put({Message::Kind::report, task, worker, std::string(text)});
      };
      try {
        mailbox.put({Message::Kind::finished, task, worker, work_(task, worker, report)});
      } catch (const Stopped&) {  // nobody waits for a result after the request to stop
      } catch (const std::exception& error) {
        mailbox.put({Message::Kind::failed, task, worker, error.what()});
      }
    }
    mailbox.put({Message::Kind::left, 0, worker, ""});
  };
  Crew crew{stopping_};
  for (int worker = 0; worker < workers_; ++worker) crew.threads.emplace_back(serve, worker);
  for (int left = 0; left < workers_;) {
    for (const Message& message : mailbox.take()) {
      left += message.kind == Message::Kind::left ? 1 : 0;
      pass_on(message, events);
    }
    if (events.tick) events.tick();
    if (events.stop.is_asked()) stopping_ = true;
  }
}

}  // namespace fl
