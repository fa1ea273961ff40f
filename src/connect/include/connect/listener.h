// SPDX-License-Identifier: BSD-2-Clause
// Where do requests for connections arrive?
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "connect/connection.h"
#include "device/engine.h"
#include "device/port.h"
#include "link/inbox.h"
#include "os/clock.h"

namespace weft::connect {

// The sink of requests. Called from within functions of Listener; must not call Listener.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  // A new request, identified by `number` from now on. False when it cannot be taken: it is
  // dropped, and the requester times out.
  virtual bool requested(std::uint64_t number, const Request& request) = 0;
};

inline constexpr std::size_t kUsualBacklog = 128;

// A mailbox for requests (rdma_listen(3), fi_listen(3)). Any thread.
class Listener final : public device::Engine, link::InboxSink {
 public:
  // Makes `place` reachable, which peers know as `name`. Errors: those of device::Port::open().
  static Result<std::unique_ptr<Listener>> open(std::shared_ptr<device::Device> device,
                                                const link::Place& place,
                                                const os::SocketAddress& name, RequestSink& sink);
  // Rejects every request that is not decided.
  ~Listener() override;

  // How many requests may wait for a decision of the program; more of them wait unseen.
  void set_backlog(std::size_t count);
  // Rejects a request. False when the requester is gone. Without memory or descriptors the
  // rejection is sent later, by progress().
  bool reject(std::uint64_t number, const ConnectData& data);
  // The accepting endpoint answers the request, or turn_down() does.
  void release(std::uint64_t number);
  // Rejects a released request that the accepting endpoint cannot answer; as reject(). False also
  // for a request of another listener.
  bool turn_down(const Request& request);

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return port_->wake_set().fd(); }

 private:
  enum class Stage {
    kWaiting,    // beyond the backlog: not reported yet
    kAnnounced,  // reported
    kReleased,   // the accepting endpoint answers
    kRejected,   // a rejection is sent, or to be sent
  };
  // A request, until its source has closed or it has been rejected.
  struct ReceivedRequest {
    std::uint64_t number = 0;
    std::uint32_t source = 0;  // in the inbox
    Request request;
    Stage stage = Stage::kWaiting;
    bool owed = false;  // the answer for that stage is not sent yet: no room
    ConnectData data;   // of a rejection
  };
  using RequestList = std::list<ReceivedRequest>;

  explicit Listener(RequestSink& sink) : sink_(sink) {}
  void source_opened(std::uint32_t, const os::SocketAddress&) override {}
  void source_closed(std::uint32_t source, bool died) override;
  void arrived(const link::Arrival& arrival) override;
  void received(void*, int) override {}
  void announce();
  RequestList::iterator find(std::uint64_t number);
  void say_no(RequestList::iterator entry, const ConnectData& data);
  bool tell(const Request& request, ConnectKind kind, const ConnectData& data);
  void tell_again();
  bool owes_a_word() const;
  void take_in();

  std::mutex mutex_;
  RequestSink& sink_;
  std::unique_ptr<device::Port> port_;
  RequestList entries_;  // in the order in which they came
  std::size_t backlog_ = kUsualBacklog;
  std::size_t announced_ = 0;
  std::uint64_t next_number_ = 1;
  int sleepers_ = 0;
  os::Time next_check_{};
};

// Rejects a request in place of an accepting endpoint at `place` that does not exist any more.
void turn_down(std::shared_ptr<device::Device> device, const link::Place& place,
               const Request& request);

}  // namespace weft::connect
