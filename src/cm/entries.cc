// SPDX-License-Identifier: BSD-2-Clause
// Which connections are there, by the numbers that messages name?
#include "entries.h"

#include <algorithm>
#include <cstring>

namespace weft::cm {
namespace {

// It has not ended at this side.
bool lives(const CmConnection& connection) {
  const Phase phase = connection.phase;
  return phase == Phase::kReqReceived || phase == Phase::kRepSent || phase == Phase::kEstablished;
}

}  // namespace

std::uint64_t hash_of(const os::SocketAddress& address, std::uint64_t seed) {
  std::uint64_t words[2] = {};
  const std::span<const std::byte> host = address.host_bytes();
  std::memcpy(words, host.data(), host.size());
  return mix(mix(seed ^ words[0]) ^ words[1]);
}

Entries::Entries(std::uint16_t port, std::uint64_t random)
    : prefix_(std::uint32_t{port} << 16), seed_(random), numbers_(random) {}

CmConnection* Entries::add() {
  if (by_id_.size() >= IdNumbers::kLast) return nullptr;
  ConnectionId id = 0;
  do {
    id = prefix_ | numbers_.next();
  } while (by_id_.contains(id));
  return &by_id_.try_emplace(id, id).first->second;
}

CmConnection* Entries::find(ConnectionId id) {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

void Entries::remove(CmConnection& connection) {
  remove(hash(connection.remote, connection.remote_id), connection);
  remove(hash_of_end(connection.remote, connection.remote_end), connection);
  by_id_.erase(connection.id);
}

void Entries::remove(std::uint64_t hash, const CmConnection& connection) {
  const auto [first, last] = by_request_.equal_range(hash);
  const auto at =
      std::find_if(first, last, [&](const auto& each) { return each.second == &connection; });
  if (at != last) by_request_.erase(at);
}

void Entries::index_request(CmConnection& connection) {
  by_request_.emplace(hash(connection.remote, connection.remote_id), &connection);
  if (connection.remote_guid == 0 || connection.remote_end == 0) return;
  by_request_.emplace(hash_of_end(connection.remote, connection.remote_end), &connection);
}

template <class Condition>
CmConnection* Entries::find(std::uint64_t hash, Condition condition) const {
  const auto [first, last] = by_request_.equal_range(hash);
  const auto at =
      std::find_if(first, last, [&](const auto& each) { return condition(*each.second); });
  return at == last ? nullptr : at->second;
}

CmConnection* Entries::find_request(const Remote& remote, std::uint32_t remote_id,
                                    std::uint64_t transaction, Role role) {
  return find(hash(remote, remote_id), [&](const CmConnection& each) {
    return each.transaction == transaction && each.remote_id == remote_id &&
           each.remote == remote && each.role == role;
  });
}

CmConnection* Entries::find_same_id(const Remote& remote, std::uint32_t remote_id,
                                    std::uint64_t guid) {
  return find(hash(remote, remote_id), [&](const CmConnection& each) {
    return lives(each) && each.remote_id == remote_id && each.remote_guid == guid &&
           each.remote == remote;
  });
}

CmConnection* Entries::find_same_end(const Remote& remote, std::uint64_t guid,
                                     std::uint32_t remote_end) {
  return find(hash_of_end(remote, remote_end), [&](const CmConnection& each) {
    return lives(each) && each.remote_end == remote_end && each.remote_guid == guid &&
           each.remote == remote;
  });
}

std::uint64_t Entries::hash(const Remote& remote, std::uint64_t number) const {
  const std::uint64_t port = remote.address.port();
  return mix(hash_of(remote.address, seed_) ^ (port << 32 | number));
}

}  // namespace weft::cm
