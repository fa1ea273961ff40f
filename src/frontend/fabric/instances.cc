// SPDX-License-Identifier: BSD-2-Clause
// Which fabrics and domains has this process opened? fi_getinfo(3) refers to them.
#include "instances.h"

#include <utility>

#include "os/at_fork.h"

namespace weft::fabric {

namespace {

struct Listed {
  std::mutex mutex;
  os::AtFork at_fork{7, mutex};
  std::list<Instance> entries;
};

// Never destroyed: programs close their objects when they like, static ones' destructors included.
Listed& listed = *new Listed;

// A forked child may use its parent's fabrics, but not their domains.
template <class Wanted>
std::optional<Instance> first(const Wanted& wanted) {
  const std::lock_guard guard(listed.mutex);
  for (const Instance& instance : listed.entries) {
    const bool is_parents = instance.domain != nullptr && instance.origin.inherited();
    if (!is_parents && wanted(instance)) return instance;
  }
  return std::nullopt;
}

}  // namespace

Instances::Listing::Listing(Instance instance) {
  const std::lock_guard guard(listed.mutex);
  entry_ = listed.entries.insert(listed.entries.end(), std::move(instance));
}

Instances::Listing::~Listing() {
  const std::lock_guard guard(listed.mutex);
  listed.entries.erase(entry_);
}

std::optional<Instance> Instances::find(const fid_fabric* fabric) {
  return first([&](const Instance& one) { return one.domain == nullptr && one.fabric == fabric; });
}

std::optional<Instance> Instances::find(const fid_domain* domain) {
  return first([&](const Instance& one) { return one.domain == domain && domain != nullptr; });
}

fid_fabric* Instances::first_fabric(const std::string& name) {
  const auto found =
      first([&](const Instance& one) { return one.domain == nullptr && one.fabric_name == name; });
  return found ? found->fabric : nullptr;
}

fid_domain* Instances::first_domain(const std::string& fabric_name, const std::string& name) {
  const auto found = first([&](const Instance& one) {
    return one.domain != nullptr && one.fabric_name == fabric_name && one.domain_name == name;
  });
  return found ? found->domain : nullptr;
}

}  // namespace weft::fabric
