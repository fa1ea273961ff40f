// SPDX-License-Identifier: BSD-2-Clause
// Two queue pairs of one process that talk over the loopback.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "memory/region_table.h"
#include "os/loopback_support.h"
#include "queue/address_handle.h"
#include "queue/queue_pair.h"

namespace weft::queue::testing {

inline std::shared_ptr<device::Device> device() {
  auto device = device::Device::get("");
  EXPECT_TRUE(device.ok()) << device.error().message;
  return device.value();
}

// The tests run once over packets and once, with FI_WEFT_LINKS=shm, through shared memory.
inline bool through_memory() {
  const char* const links = std::getenv("FI_WEFT_LINKS");
  return links != nullptr && std::string(links) == "shm";
}

// One end of a connection: a protection domain, a region, completion queues, a queue pair.
class End : QpEventSink {
 public:
  explicit End(QpType type, QpReceiveQueue* shared = nullptr, std::uint32_t sends = 64,
               bool shares = through_memory(), std::shared_ptr<QpPort> of_another = nullptr) {
    port = of_another != nullptr ? std::move(of_another) : QpPort::open(device_, shares).value();
    RegionAttributes all;
    all.domain = domain;
    all.access = kLocalRead | kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite |
                 Access::kRemoteAtomic;
    all.base = all.start = reinterpret_cast<std::uint64_t>(memory.data());
    all.length = memory.size();
    all.choose_key = all.short_key = true;
    region = device_->regions().add(all).value();
    for (auto* queue : {&sent, &received}) {
      *queue = std::make_unique<device::CompletionQueue>(
          1024, Locking(true), device::WaitKind::kNone, device::CompletionQueue::Full::kOverrun);
      EXPECT_TRUE((*queue)->engines().open().ok());
      EXPECT_TRUE((*queue)->engines().attach(*port).ok());
    }
    QpSetup setup;
    setup.device = device_;
    setup.port = port;
    setup.type = type;
    setup.domain = domain;
    setup.sends = sent.get();
    setup.receives = received.get();
    setup.shared = shared;
    setup.capacities = {sends, 64, 4, 4, 128};
    setup.all_signaled = true;
    setup.events = this;
    setup.refusals = &log_;
    pair = std::move(QueuePair::create(setup)).value();
  }
  ~End() {
    pair.reset();
    for (auto* queue : {&sent, &received}) (*queue)->engines().detach(*port);
    EXPECT_TRUE(device_->regions().remove(region).ok());
  }

  void happened(QpEvent event) override { events.push_back(event); }
  std::uint32_t key() const { return static_cast<std::uint32_t>(region.key.v); }
  work::Segment part(std::size_t at, std::size_t length) {
    return {memory.data() + at, length, key()};
  }
  std::uint64_t address(std::size_t at) const {
    return reinterpret_cast<std::uint64_t>(memory.data() + at);
  }

  Status to(QpState state, const QpAttributes& wanted, std::uint32_t mask) {
    QpAttributes attributes = wanted;
    attributes.state = state;
    return pair->modify(attributes, mask | kAttributeState, 4096);
  }
  // RESET to RTS, towards that queue pair.
  void connect(std::uint32_t destination, QpAttributes with = usual()) {
    with.destination = destination;
    const bool datagrams = pair->type() == QpType::kUd;
    const bool reliable = pair->type() != QpType::kUc && !datagrams;
    ASSERT_TRUE(to(QpState::kInit, with,
                   kAttributePkeyIndex | kAttributePort |
                       (datagrams ? kAttributeQueueKey : kAttributeAccess))
                    .ok());
    std::uint32_t mask = 0;
    if (!datagrams) {
      mask = kAttributeAddress | kAttributePathMtu | kAttributeDestination | kAttributeReceivePsn;
    }
    if (reliable && pair->type() != QpType::kXrcSend) {
      mask |= kAttributeMaxReadsOfPeer | kAttributeRnrTimer;
    }
    const Status ready = to(QpState::kReadyToReceive, with, mask);
    ASSERT_TRUE(ready.ok()) << ready.error().message;
    mask = kAttributeSendPsn;
    if (reliable && pair->type() != QpType::kXrcReceive) {
      mask |= kAttributeTimeout | kAttributeRetries | kAttributeRnrRetries | kAttributeMaxReads;
    }
    if (pair->type() == QpType::kXrcReceive) mask |= kAttributeTimeout;
    ASSERT_TRUE(to(QpState::kReadyToSend, with, mask).ok());
  }
  static QpAttributes usual() {
    QpAttributes attributes;
    attributes.port = 1;
    attributes.access = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
    attributes.queue_key = 0x1234;
    attributes.address.local = attributes.address.remote = os::loopback(0);
    attributes.path_mtu = 1024;
    attributes.receive_psn = Psn(0x123456);
    attributes.send_psn = Psn(0x123456);
    attributes.max_reads = attributes.max_reads_of_peer = 16;
    attributes.rnr_timer = 1;
    attributes.timeout = 14;
    attributes.retries = 7;
    attributes.rnr_retries = 7;
    return attributes;
  }

  int post(const QpSendRequest& request) { return QueuePair::Posting(*pair).post(request); }
  int send(std::span<const work::Segment> sges, std::uint64_t id = 0) {
    QpSendRequest request;
    request.id = id;
    request.work.sges = sges;
    for (const auto& each : sges) request.work.length += each.length;
    return post(request);
  }
  int receive(std::span<const work::Segment> sges, std::uint64_t id = 0) {
    return pair->post_receive(id, sges);
  }
  // The next completion of a queue, within a time that only a hang takes.
  static std::optional<device::Completion> poll(device::CompletionQueue& queue) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::optional<device::Completion> found;
    while (!found && std::chrono::steady_clock::now() < end) {
      if (queue.empty()) queue.engines().progress();
      device::CompletionQueue::Front front{};
      queue.pop(1, front, [&](const device::Completion& one) { found = one; });
      device::Completion error;
      if (!found && queue.pop_error(error)) found = error;
      if (found) QueuePair::polled(*found);
    }
    EXPECT_TRUE(found) << "no completion";
    return found;
  }
  device::Completion next_sent() { return poll(*sent).value_or(device::Completion{}); }
  device::Completion next_received() { return poll(*received).value_or(device::Completion{}); }

 private:
  using RegionAttributes = memory::RegionAttributes;
  std::shared_ptr<device::Device> device_ = device();

 public:
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 21);
  DomainId domain = device_->new_domain();
  memory::Registration region;
  std::shared_ptr<QpPort> port;
  std::unique_ptr<device::CompletionQueue> sent;
  std::unique_ptr<device::CompletionQueue> received;
  std::unique_ptr<QueuePair> pair;
  std::vector<QpEvent> events;
  // Called with the lock of the port, or that of the send queue.
  std::vector<std::string> sentences() const {
    const std::lock_guard guard(sentences_lock_);
    return sentences_;
  }

 private:
  mutable std::mutex sentences_lock_;
  std::vector<std::string> sentences_;
  RefusalLog log_{[this](const std::string& sentence) {
    const std::lock_guard guard(sentences_lock_);
    sentences_.push_back(sentence);
  }};
};

// Two ends that are connected.
struct Couple {
  explicit Couple(QpType type, const QpAttributes& with = End::usual(),
                  bool shares = through_memory())
      : a(type == QpType::kXrcReceive ? QpType::kXrcSend : type, nullptr, 64, shares),
        b(type, nullptr, 64, shares) {
    a.connect(b.pair->qpn(), with);
    b.connect(a.pair->qpn(), with);
  }
  // Returns when the background thread has done all that belongs to the packets which the ends have
  // taken: completions and answers are seen before a queue pair changes its state.
  void await_threads() const {
    for (const End* end : {&a, &b, &a, &b}) {
      end->port
          ->progress();  // a refused access is told behind its completion through shared memory
      const MutexLock guard(end->port->lock());
    }
  }
  // The memory of `b`, with all that its port has written there.
  const std::byte* memory_of_b() const {
    const MutexLock guard(b.port->lock());
    return b.memory.data();
  }
  End a;
  End b;
};

}  // namespace weft::queue::testing
