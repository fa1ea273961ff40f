// SPDX-License-Identifier: BSD-2-Clause
// Where do requests come from without an allocation per operation?
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

namespace weft::messaging {

// Objects that are made once and used again and again. Grows as needed, never shrinks. One thread.
template <class T>
class Pool {
 public:
  // An object in whatever state its last user left it.
  T& take() {
    if (free_ == nullptr) [[unlikely]]
      return *all_.emplace_back(std::make_unique<Node>());
    Node* node = free_;
    free_ = node->next;
    return *node;
  }
  // Gives back what take() gave.
  void give(T& object) {
    auto& node = static_cast<Node&>(object);
    node.next = free_;
    free_ = &node;
  }
  // The first object for which wanted(T&) is true, given back or not; else nullptr.
  template <class Wanted>
  T* find(Wanted wanted) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const auto& object) { return wanted(*object); });
    return found != all_.end() ? found->get() : nullptr;
  }

 private:
  struct Node : T {
    Node* next = nullptr;
  };
  std::vector<std::unique_ptr<Node>> all_;  // without memory while it is empty
  Node* free_ = nullptr;
};

}  // namespace weft::messaging
