// SPDX-License-Identifier: BSD-2-Clause
// How many objects of one kind may be open at once, and is there a place for one more? fi_domain(3)
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "terms.h"

namespace weft::fabric {

// The places for objects of one kind; it outlives them all. Any thread.
class Places {
 public:
  // One object's; free again when this ends. Empty: none was left.
  class Reservation {
   public:
    Reservation() = default;
    explicit Reservation(Places& of) : of_(&of) {}
    Reservation(Reservation&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~Reservation() {
      if (of_ != nullptr) --of_->taken_;
    }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    Places* of_ = nullptr;
  };

  // `attribute` names the limit `most` in the log.
  Places(std::string attribute, std::size_t most) : attribute_(std::move(attribute)), most_(most) {}
  // Empty when all places are taken, which is logged; places given back meanwhile count.
  Reservation take();
  // How many are taken.
  std::size_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  const std::string attribute_;
  const std::size_t most_;
  std::atomic<std::size_t> taken_{0};
};

// Those of a domain: what its attributes say, or, where these are 0, what is offered.
struct DomainPlaces {
  DomainPlaces(const fi_domain_attr& attributes, const Terms& terms);

  Places queues;
  Places counters;
  Places endpoints;
  Places transmit_contexts;  // of endpoints of their own, and shared ones
  Places receive_contexts;
  Places regions;
  // The most endpoints that share a context.
  const std::size_t sharing_transmit;
  const std::size_t sharing_receive;
};

}  // namespace weft::fabric
