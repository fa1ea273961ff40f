// SPDX-License-Identifier: BSD-2-Clause
// What do the tests of the same-host link share? A private directory, sinks that write down, peers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "link_shm/mailbox.h"
#include "link_shm/names.h"
#include "link_shm/outbox.h"
#include "os/loopback_support.h"
#include "os/test_directory_support.h"

namespace weft::shm::testing {

using os::loopback;
using RuntimeDir = os::TestDirectory;

// Of the slots of senders that choose no geometry of their own.
inline constexpr std::uint32_t kCells = kMessageGeometry.cells;
inline constexpr std::uint32_t kRendezvousCount = kMessageGeometry.rendezvous_records;
inline constexpr std::uint32_t kBulkBytes = kMessageGeometry.bulk_bytes;

inline std::unique_ptr<Mailbox> make_mailbox(const std::string& directory, std::uint16_t port) {
  auto box = Mailbox::create({directory, loopback(port), DomainId{1}, "none", 0});
  return box ? std::move(box).value() : nullptr;
}

// Bytes that tell where they belong: a lost, doubled or shifted piece shows.
inline std::vector<std::byte> pattern(std::size_t length, std::uint64_t seed) {
  std::vector<std::byte> bytes(length);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
  for (auto& byte : bytes) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(x >> 56);
  }
  return bytes;
}

// A sender with a bell of its own.
struct Peer {
  os::Waker waker = std::move(os::Waker::create()).value();
  Sender sender;
  std::unique_ptr<Outbox> box;

  Peer(const std::string& directory, std::uint16_t port, std::size_t eager_limit = 8192) {
    sender = {directory, loopback(port), &waker, eager_limit};
  }
  bool open(std::uint16_t to) {
    auto opened = Outbox::open(sender, loopback(to));
    if (opened) box = std::move(opened).value();
    return opened.ok();
  }
  // Sends one piece; it must live until the message is done.
  link::Outcome send(std::uint64_t tag, std::span<std::byte> bytes, bool until_delivered = false,
                     bool must_copy = false) {
    const LocalRange sge{bytes.data(), bytes.size()};
    link::SendRequest request;
    request.operation = link::MessageOperation::kTagged;
    request.tag = tag;
    request.data = ~tag;
    request.has_data = tag % 2 != 0;
    request.until_delivered = until_delivered;
    request.must_copy = must_copy;
    request.sges = {&sge, 1};
    request.length = bytes.size();
    request.cookie = reinterpret_cast<void*>(tag);
    return box->send(request);
  }
};

// Writes down how pending sends ended, by their tag.
struct FlowLog final : link::FlowSink {
  std::map<std::uint64_t, int> finished;
  void ended(void* cookie, int error, int) override {
    finished.emplace(reinterpret_cast<std::uint64_t>(cookie), error);
  }
};

// Writes down what arrives; takes offered messages at once unless told to wait.
struct InboxLog final : link::InboxSink {
  struct Message {
    link::Arrival arrival;
    std::vector<std::byte> bytes;
    int error = -1;  // of an accepted offer; -1 while it is not in place
  };
  struct Accessed {
    Access access;
    std::vector<RegionKey> regions;
    bool operator==(const Accessed&) const = default;
  };
  struct Closed {
    std::uint32_t source;
    bool died;
    bool operator==(const Closed&) const = default;
  };
  Mailbox* box = nullptr;
  bool accepts = true;
  bool acknowledges = true;
  std::deque<Message> messages;
  std::vector<std::pair<std::uint32_t, os::SocketAddress>> opened;
  std::vector<Closed> closed;
  std::vector<Accessed> accesses;
  std::vector<std::pair<std::string, RefusedAccess>> refusals;  // with their operations

  explicit InboxLog(Mailbox* owner) : box(owner) {}
  std::vector<std::uint32_t> withdrawn_ones;  // by their rendezvous

  void source_opened(std::uint32_t source, const os::SocketAddress& address) override {
    opened.emplace_back(source, address);
  }
  void source_closed(std::uint32_t source, bool died) override { closed.push_back({source, died}); }
  void arrived(const link::Arrival& arrival) override {
    Message& message = messages.emplace_back(Message{arrival, {}, -1});
    if (arrival.payload != nullptr) {
      message.bytes.assign(arrival.payload, arrival.payload + arrival.length);
      message.error = 0;
      if (arrival.wants_ack && acknowledges) box->acknowledge(arrival.offer);
    } else if (accepts) {
      accept(message);
    }
  }
  void accessed(std::uint32_t, Access access, std::span<const RegionKey> regions) override {
    accesses.push_back({access, {regions.begin(), regions.end()}});
  }
  void refused(std::uint32_t, const char* operation, const RefusedAccess& access) override {
    refusals.emplace_back(operation, access);
  }
  void accept(Message& message) {
    message.bytes.resize(message.arrival.length);
    const LocalRange sge{message.bytes.data(), message.bytes.size()};
    box->accept(*this, message.arrival.offer, {&sge, 1}, sge.length, &message);
  }
  void withdrawn(const link::Offer& offer) override {
    withdrawn_ones.push_back(offer.rendezvous_id);
  }
  void received(void* cookie, int error) override { static_cast<Message*>(cookie)->error = error; }
};

inline constexpr std::uint16_t kOwner = 7001;
inline constexpr std::uint16_t kSender = 7101;

// A mailbox, and a sender that has not opened it, in a directory of their own.
struct OwnerAndSender {
  RuntimeDir dir;
  std::unique_ptr<Mailbox> box = make_mailbox(dir.path(), kOwner);
  InboxLog log{box.get()};
  FlowLog flow;
  Peer peer{dir.path(), kSender};
};

// A sender's slot as a third party sees it: for reading marks and for playing the other side.
struct SlotView {
  os::SharedFilePtr file;
  os::Mapping memory;

  SlotView(const std::string& directory, std::uint16_t port, std::uint32_t slot)
      : file(os::SharedFile::open(mailbox_path(directory, loopback(port))).value()) {
    // Both sides make the file only as long as they need it.
    EXPECT_TRUE(file->reserve(slot_at(slot + 1) - kSlotPage, kSlotPage).ok());
    memory = std::move(file->map(slot_at(slot), kSlotBytes)).value();
  }
  SlotHeader& header() const { return *memory.at<SlotHeader>(0); }
  Rendezvous& rendezvous(std::uint32_t number) const {
    return memory.at<Rendezvous>(header().geometry.rendezvous_records_at())[number];
  }
  Cell& cell(std::uint64_t position) const {
    return memory.at<Cell>(kCellsAt)[position % header().geometry.cells];
  }
};

// A forked process that runs `body` once told to. Fork before this process opens shared files:
// their claims are not inherited, though this process's memory of them is. Dies with its object.
class Child {
 public:
  // `body` may tell() and await_word() through the object that it is given.
  explicit Child(const std::function<void(Child&)>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Lets the other side's await_word() return.
  void tell();
  // False when the other side has said nothing for ten seconds.
  bool await_word();
  // kill -9, and gone when this returns.
  void kill_it();

 private:
  int to_child_[2];
  int to_parent_[2];
  pid_t pid_ = -1;
};

}  // namespace weft::shm::testing
