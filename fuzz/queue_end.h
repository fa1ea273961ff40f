// SPDX-License-Identifier: BSD-2-Clause
// How does a fuzzer use a queue pair, and see that each request completes once and that no other
// memory is written?
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "input.h"
#include "memory/region_table.h"
#include "os/loopback_support.h"
#include "queue/address_handle.h"
#include "queue/queue_pair.h"

namespace weft::fuzz {

using queue::QpState;
using queue::QpType;

class QueueEnd final : queue::QpEventSink, queue::SharedReceives {
 public:
  static constexpr std::size_t kReceives = 16;
  static constexpr std::size_t kSends = 16;
  static constexpr std::size_t kRequests = kReceives + kSends;  // ids: receives, then sends
  static constexpr std::size_t kRoom = 4096;                    // of each, with as much behind it
  static constexpr std::size_t kSource = 64 * 1024;             // bytes to send: kFilling
  static constexpr std::byte kFilling{0xa5};

  QueueEnd(std::shared_ptr<device::Device> device, std::shared_ptr<queue::QpPort> port, QpType type)
      : device_(std::move(device)), port_(std::move(port)) {
    memory::RegionAttributes all;
    all.domain = domain_;
    all.access = kLocalRead | kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite |
                 Access::kRemoteAtomic;
    all.base = all.start = reinterpret_cast<std::uint64_t>(memory_.data());
    all.length = memory_.size();
    all.choose_key = all.short_key = true;
    region_ = device_->regions().add(all).value();
    for (auto* queue : {&sent_, &received_}) {
      require((*queue).engines().open().ok() && (*queue).engines().attach(*port_).ok(),
              "a completion queue has no port");
    }
    queue::QpSetup setup;
    setup.device = device_;
    setup.port = port_;
    setup.type = type;
    setup.domain = domain_;
    setup.sends = &sent_;
    setup.receives = &received_;
    if (type == QpType::kXrcReceive) setup.shared_by_number = this;
    setup.capacities = {kSends, kReceives, 4, 4, 128};
    setup.all_signaled = true;
    setup.events = this;
    setup.refusals = &log_;
    pair_ = std::move(queue::QueuePair::create(setup)).value();
  }
  ~QueueEnd() {
    pair_.reset();
    for (auto* queue : {&sent_, &received_}) queue->engines().detach(*port_);
    require(device_->regions().remove(region_).ok(), "a region stays in use");
  }
  QueueEnd(const QueueEnd&) = delete;
  QueueEnd& operator=(const QueueEnd&) = delete;

  std::uint32_t qpn() const { return pair_->qpn(); }
  QpType type() const { return pair_->type(); }
  queue::QueuePair& pair() { return *pair_; }
  bool sends() const { return type() != QpType::kXrcReceive; }
  bool receives() const { return type() != QpType::kXrcSend; }
  std::uint32_t key() const { return static_cast<std::uint32_t>(region_.key.v); }
  std::byte* source() { return memory_.data() + kRequests * 2 * kRoom; }
  std::byte* place(std::size_t id) { return memory_.data() + id * 2 * kRoom; }

  // RESET to RTS. `patience`: the retry counts.
  void connect(std::uint32_t destination, std::uint8_t patience) {
    using namespace queue;
    QpAttributes with;
    with.port = 1;
    with.access = Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteAtomic;
    with.queue_key = kQueueKey;
    with.address.local = with.address.remote = os::loopback(0);
    with.path_mtu = 4096;
    with.destination = destination;
    with.max_reads = with.max_reads_of_peer = 16;
    with.rnr_timer = 1;
    with.timeout = 1;
    with.retries = with.rnr_retries = patience;
    const bool datagrams = type() == QpType::kUd;
    const bool reliable = !datagrams && type() != QpType::kUc;
    modify(
        QpState::kInit, with,
        kAttributePkeyIndex | kAttributePort | (datagrams ? kAttributeQueueKey : kAttributeAccess));
    std::uint32_t mask = datagrams ? 0
                                   : kAttributeAddress | kAttributePathMtu | kAttributeDestination |
                                         kAttributeReceivePsn;
    if (reliable && receives()) mask |= kAttributeMaxReadsOfPeer | kAttributeRnrTimer;
    modify(QpState::kReadyToReceive, with, mask);
    mask = kAttributeSendPsn;
    if (reliable) mask |= kAttributeTimeout;
    if (reliable && sends()) mask |= kAttributeRetries | kAttributeRnrRetries | kAttributeMaxReads;
    modify(QpState::kReadyToSend, with, mask);
  }

  void post_receive(std::size_t length) {
    const std::size_t id = free_id(0, kReceives);
    if (!receives() || id == kReceives) return;
    const work::Segment in[] = {{place(id), length / 3, key()},
                                {place(id) + length / 3, length - length / 3, key()}};
    posted_[id] = length;
    const bool shared = type() == QpType::kXrcReceive;
    if ((shared ? shared_.post(id, in) : pair_->post_receive(id, in)) != 0) posted_[id] = kNone;
  }
  // Fills in the id and the places of `request`.
  void post(queue::QueuePair::Posting& posting, queue::QpSendRequest request, std::size_t length) {
    const std::size_t id = free_id(kReceives, kRequests);
    if (!sends() || id == kRequests) return;
    const bool reads = request.work.kind >= work::WorkKind::kRead;
    const work::Segment local[] = {
        {reads ? place(id) : source(), static_cast<std::uint32_t>(length), key()}};
    request.id = id;
    request.work.sges = local;
    request.work.length = length;
    if (type() == QpType::kUd) request.to = &handle_;
    request.queue_key = kQueueKey;
    posted_[id] = reads ? length : 0;
    if (posting.post(request) != 0) posted_[id] = kNone;
  }

  void poll() {
    port_->progress();
    for (auto* queue : {&sent_, &received_}) {
      queue->pop_any(64, [&](const device::Completion& one) {
        queue::QueuePair::polled(one);
        complete(reinterpret_cast<std::uint64_t>(one.context), one);
      });
    }
  }
  bool idle() const {
    return std::ranges::all_of(posted_, [](std::size_t each) { return each == kNone; });
  }
  // How many requests have succeeded.
  unsigned successes() const { return successes_; }

  // Ends all work; no byte of the memory may have another value then.
  void finish() {
    modify(QpState::kError, {}, 0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (;;) {
      poll();
      queue::PostedReceive left;
      while (shared_.take(left)) complete(left.id, {});
      if (idle()) break;
      require(std::chrono::steady_clock::now() < end, "a request never completes");
    }
    modify(QpState::kReset, {}, 0);
    poll();
    check();
  }
  void check() {
    const std::byte* const bytes = memory_.data();
    const bool same = std::memcmp(bytes, bytes + 1, memory_.size() - 1) == 0;
    require(same && *bytes == kFilling, "memory was written that was not offered");
  }

  static constexpr std::uint32_t kQueueKey = 0x1234;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void happened(queue::QpEvent /*event*/) override {}
  bool find(std::uint32_t number, queue::ReceiveEnd& end) override {
    end = {&shared_, domain_, &received_};
    return number == 1;
  }
  std::uint32_t group() const override { return 9; }

  void modify(QpState state, queue::QpAttributes with, std::uint32_t mask) {
    with.state = state;
    const Status done = pair_->modify(with, mask | queue::kAttributeState, 4096);
    require(done.ok(), "a queue pair does not change its state");
  }
  std::size_t free_id(std::size_t first, std::size_t end) const {
    while (first != end && posted_[first] != kNone) ++first;
    return first;
  }
  void complete(std::uint64_t id, const device::Completion& how) {
    require(id < kRequests && posted_[id] != kNone, "a request completed twice");
    if (how.ok()) ++successes_;
    std::fill_n(place(id), posted_[id], kFilling);
    posted_[id] = kNone;
  }

  const std::shared_ptr<device::Device> device_;
  const std::shared_ptr<queue::QpPort> port_;
  const DomainId domain_ = device_->new_domain();
  std::vector<std::byte> memory_ =
      std::vector<std::byte>(kRequests * 2 * kRoom + kSource, kFilling);
  memory::Registration region_;
  device::CompletionQueue sent_{1024, Locking(true), device::WaitKind::kNone,
                                device::CompletionQueue::Full::kOverrun};
  device::CompletionQueue received_{1024, Locking(true), device::WaitKind::kNone,
                                    device::CompletionQueue::Full::kOverrun};
  queue::QpReceiveQueue shared_{kReceives, 4};
  const queue::AddressHandle handle_{domain_, [] {
                                       queue::QpAddress address;
                                       address.local = address.remote = os::loopback(0);
                                       return address;
                                     }()};
  std::array<std::size_t, kRequests> posted_ = [] {
    std::array<std::size_t, kRequests> none;
    none.fill(kNone);
    return none;
  }();
  unsigned successes_ = 0;
  RefusalLog log_{[](const std::string& /*sentence*/) {}};
  std::unique_ptr<queue::QueuePair> pair_;
};

}  // namespace weft::fuzz
