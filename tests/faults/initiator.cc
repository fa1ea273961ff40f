// SPDX-License-Identifier: BSD-2-Clause
// Which sizes, places and calls make up each kind of operation?
#include "initiator.h"

#include <rdma/fi_atomic.h>

#include <algorithm>

#include "arena.h"
#include "failure.h"

namespace weft::faults {

namespace {

constexpr std::uint64_t kFloodLimit = 3000;  // unexpected messages fill the receiver's memory

// Numbers in the scratch at the beginning of the target's region, so that many
// initiators meet there; those of a long operation may lie on two pages.
constexpr std::size_t kAtomicBytes = 256;
constexpr std::size_t kSumsAt = kScratchAt + 4096 - kAtomicBytes / 2;

// How many operations of a kind may be pending, and the largest of them.
struct Shape {
  std::size_t window;
  std::size_t largest;
};

Shape shape_of(Action action) {
  switch (action) {
    case Action::kSmall:
      return {32, 64};
    case Action::kLarge:
      return {4, 512 * 1024};
    case Action::kTagged:
      return {16, 40000};
    case Action::kFlood:
      return {32, 64 * 1024};
    case Action::kWrite:
    case Action::kRead:
      return {16, 256 * 1024};
    case Action::kWriteData:
      return {16, kCellBytes};
    case Action::kDeliver:
      return {8, 200000};
    case Action::kChurn:
      return {2, 256 * 1024};
    case Action::kAtomic:
      return {8, kAtomicBytes};
  }
  return {1, 64};
}

}  // namespace

Initiator::Initiator(Action action, const Target& target, std::uint64_t seed, OnError on_error)
    : action_(action), target_(target), random_(seed), on_error_(std::move(on_error)) {
  const Shape shape = shape_of(action);
  const std::size_t count = shape.window + 1;  // one for post_late()
  memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(count * shape.largest);
  for (std::size_t i = 0; i < count; ++i) {
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->target = this;
    operations_.back()->memory = {memory_.get() + i * shape.largest, shape.largest};
    if (i + 1 < count) free_.push_back(operations_.back().get());
  }
}

std::size_t Initiator::choose_size() {
  const auto between = [&](std::size_t low, std::size_t high) {
    return low + random_() % (high - low + 1);
  };
  constexpr std::array<std::size_t, 3> kRma{8, 4096, 256 * 1024};
  constexpr std::array<std::size_t, 3> kDelivered{64, 20000, 200000};
  switch (action_) {
    case Action::kSmall:
      return 64;
    case Action::kLarge:
      return between(64 * 1024, 512 * 1024);
    case Action::kTagged:
      return between(kSmallestPayload, 40000);
    case Action::kFlood:
      return random_() % 16 == 0 ? 64 * 1024 : between(kSmallestPayload, 4096);
    case Action::kWrite:
    case Action::kRead:
      return kRma.at(random_() % kRma.size());
    case Action::kWriteData:
      return kCellBytes;
    case Action::kDeliver:
      return kDelivered.at(random_() % kDelivered.size());
    case Action::kChurn:
      return 256 * 1024;
    case Action::kAtomic:
      return random_() % 4 == 0 ? kAtomicBytes : 8;
  }
  return 64;
}

void Initiator::prepare(Operation& operation) {
  operation.sequence = next_sequence_++;
  operation.bytes = choose_size();
  const Bytes memory = operation.memory.first(operation.bytes);
  if (action_ == Action::kAtomic) {
    std::fill(memory.begin(), memory.end(), std::uint8_t{0});
    for (std::size_t at = 0; at < memory.size(); at += 8) memory[at] = 1;
  } else if (action_ == Action::kRead) {
    fill_pattern(memory, operation.sequence);  // so that data which never came is noticed
  } else if (operation.bytes >= kSmallestPayload) {
    write_payload(memory, target_.id, operation.sequence);
  }
}

long Initiator::post_delivered(Operation& operation) {
  const iovec vector{operation.memory.data(), operation.bytes};
  fi_msg message = {};
  message.msg_iov = &vector;
  message.iov_count = 1;
  message.addr = target_.address;
  message.context = &operation.context;
  return fi_sendmsg(target_.endpoint, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

// Each cell is written once, with its number as data; after the last one only the scratch is
// written.
long Initiator::post_cell(Operation& operation) {
  if (operation.sequence >= kCells) {
    return fi_write(target_.endpoint, operation.memory.data(), operation.bytes, nullptr,
                    target_.address, target_.base + kScratchAt, kArenaKey, &operation.context);
  }
  const std::uint64_t data = target_.id << 32 | operation.sequence;
  return fi_writedata(target_.endpoint, operation.memory.data(), operation.bytes, nullptr, data,
                      target_.address, target_.base + kCellsAt + operation.sequence * kCellBytes,
                      kArenaKey, &operation.context);
}

// Every other one brings the sums back; all have their numbers in common.
long Initiator::post_atomic(Operation& operation) {
  void* memory = operation.memory.data();
  const std::size_t count = operation.bytes / 8;
  if (operation.sequence % 2 == 0) {
    return fi_atomic(target_.endpoint, memory, count, nullptr, target_.address, kSumsAt, kArenaKey,
                     FI_UINT64, FI_SUM, &operation.context);
  }
  return fi_fetch_atomic(target_.endpoint, memory, count, nullptr, sums_.data(), nullptr,
                         target_.address, kSumsAt, kArenaKey, FI_UINT64, FI_SUM,
                         &operation.context);
}

long Initiator::post(Operation& operation) {
  void* memory = operation.memory.data();
  void* context = &operation.context;
  fid_ep* endpoint = target_.endpoint;
  const std::size_t bytes = operation.bytes;
  const fi_addr_t to = target_.address;
  switch (action_) {
    case Action::kSmall:
    case Action::kLarge:
      return fi_send(endpoint, memory, bytes, nullptr, to, context);
    case Action::kTagged:
      return fi_tsend(endpoint, memory, bytes, nullptr, to, tag_of(target_.id, Use::kStream),
                      context);
    case Action::kFlood:
      return fi_tsend(endpoint, memory, bytes, nullptr, to, tag_of(target_.id, Use::kFlood),
                      context);
    case Action::kWrite:
      return fi_write(endpoint, memory, bytes, nullptr, to, target_.base + kScratchAt, kArenaKey,
                      context);
    case Action::kRead:
      return fi_read(endpoint, memory, bytes, nullptr, to, target_.base + kReadableAt, kArenaKey,
                     context);
    case Action::kWriteData:
      return post_cell(operation);
    case Action::kDeliver:
      return post_delivered(operation);
    case Action::kChurn:
      return fi_write(endpoint, memory, bytes, nullptr, to, 0, target_.churn_key, context);
    case Action::kAtomic:
      return post_atomic(operation);
  }
  return -FI_ENOSYS;
}

// True if the operation is out of our hands: pending, or refused for good.
bool Initiator::try_post(Operation& operation) {
  operation.pending = true;
  const long status = post(operation);
  if (status == 0) {
    ++pending_;
    return true;
  }
  operation.pending = false;
  if (status == -FI_EAGAIN) return false;
  if (&operation != operations_.back().get()) free_.push_back(&operation);
  on_error_(static_cast<int>(-status), std::string("posting a ") + name_of(action_));
  return true;
}

int Initiator::advance() {
  int taken = 0;
  while (prepared_ != nullptr || !free_.empty()) {
    if (prepared_ == nullptr) {
      if (action_ == Action::kFlood && next_sequence_ >= kFloodLimit) break;
      prepared_ = free_.back();
      free_.pop_back();
      prepare(*prepared_);
    }
    const std::size_t before = pending_;
    if (!try_post(*prepared_)) break;
    prepared_ = nullptr;
    if (pending_ == before) break;  // refused: let the owner decide
    ++taken;
  }
  return taken;
}

bool Initiator::post_late() {
  Operation& operation = *operations_.back();
  if (operation.bytes == 0) prepare(operation);
  return try_post(operation);
}

void Initiator::settle(Operation& operation) {
  --pending_;
  if (&operation != operations_.back().get()) free_.push_back(&operation);
}

void Initiator::completed(Operation& operation, const fi_cq_tagged_entry&) {
  if (action_ == Action::kRead &&
      !is_pattern(operation.memory.first(operation.bytes), kReadableStream)) {
    fail("a read of " + std::to_string(operation.bytes) + " bytes completed with wrong data");
  }
  ++completed_;
  settle(operation);
}

void Initiator::failed(Operation& operation, const fi_cq_err_entry& error) {
  settle(operation);
  on_error_(error.err,
            std::string(name_of(action_)) + " of " + std::to_string(operation.bytes) + " bytes");
}

std::string Initiator::describe_pending() const {
  if (pending_ == 0) return " none";
  for (const auto& operation : operations_) {
    if (!operation->pending) continue;
    return " " + std::to_string(pending_) + ", one of them number " +
           std::to_string(operation->sequence) + " of " + std::to_string(operation->bytes) +
           " bytes";
  }
  return " " + std::to_string(pending_) + " but none of ours";
}

}  // namespace weft::faults
