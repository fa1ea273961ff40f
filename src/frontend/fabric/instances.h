// SPDX-License-Identifier: BSD-2-Clause
// Which fabrics and domains has this process opened? fi_getinfo(3) refers to them.
#pragma once

#include <rdma/fabric.h>

#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "os/origin.h"

namespace weft::fabric {

// An open fabric, or an open domain.
struct Instance {
  fid_fabric* fabric = nullptr;  // of a domain: the one that it was opened on
  fid_domain* domain = nullptr;  // null: the fabric itself
  std::string fabric_name;
  std::string domain_name;
  fi_domain_attr attributes{};  // those that the domain was opened with; no pointer in it is set
  os::Origin origin{};
};

// Those of this process and the fabrics of its parents, in the order in which they were opened. Any
// thread. An object that a program names is looked up here and not looked into: it may have been
// closed.
class Instances {
 public:
  // Lists an instance as long as it lives.
  class Listing {
   public:
    explicit Listing(Instance instance);
    ~Listing();
    Listing(const Listing&) = delete;
    Listing& operator=(const Listing&) = delete;

   private:
    std::list<Instance>::iterator entry_;
  };

  // The open instance of that object, if it is one.
  static std::optional<Instance> find(const fid_fabric* fabric);
  static std::optional<Instance> find(const fid_domain* domain);
  // The one that was opened first of that name, or null.
  static fid_fabric* first_fabric(const std::string& name);
  static fid_domain* first_domain(const std::string& fabric_name, const std::string& name);
};

}  // namespace weft::fabric
