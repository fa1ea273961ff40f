// SPDX-License-Identifier: BSD-2-Clause
// Which connections are there, by the numbers that messages name?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "connection.h"
#include "id_numbers.h"

namespace weft::cm {

// A number for an address, different for each `seed`, so that peers cannot choose equal ones.
std::uint64_t hash_of(const os::SocketAddress& address, std::uint64_t seed);

// All entries of an agent. Pointers stay valid until remove().
class Entries {
 public:
  // Communication ids are `port << 16 | number`.
  Entries(std::uint16_t port, std::uint64_t random);

  // With the next free id; null when none is free.
  CmConnection* add();
  CmConnection* find(ConnectionId id);
  void remove(CmConnection& connection);

  // From now on find_request() finds it, by `remote`, `remote_id`, `transaction` and `role`.
  void index_request(CmConnection& connection);
  CmConnection* find_request(const Remote& remote, std::uint32_t remote_id,
                             std::uint64_t transaction, Role role = Role::kAcceptor);
  // One that lives, made by a REQ with the same communication id, or of the same queue pair.
  CmConnection* find_same_id(const Remote& remote, std::uint32_t remote_id, std::uint64_t guid);
  CmConnection* find_same_end(const Remote& remote, std::uint64_t guid, std::uint32_t remote_end);

  std::size_t size() const { return by_id_.size(); }
  // The number of entries that satisfy a condition.
  template <class Condition>
  std::size_t count(Condition condition) const {
    const auto holds = [&](const auto& each) { return condition(each.second); };
    return static_cast<std::size_t>(std::count_if(by_id_.begin(), by_id_.end(), holds));
  }

 private:
  std::uint64_t hash(const Remote& remote, std::uint64_t number) const;
  std::uint64_t hash_of_end(const Remote& remote, std::uint32_t end) const {
    return hash(remote, std::uint64_t{1} << 48 | end);
  }
  template <class Condition>
  CmConnection* find(std::uint64_t hash, Condition condition) const;
  void remove(std::uint64_t hash, const CmConnection& connection);

  const std::uint32_t prefix_;
  const std::uint64_t seed_;
  IdNumbers numbers_;
  std::unordered_map<ConnectionId, CmConnection> by_id_;
  // By communication id, and again by the end.
  std::unordered_multimap<std::uint64_t, CmConnection*> by_request_;
};

}  // namespace weft::cm
