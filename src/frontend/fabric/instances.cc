// SPDX-License-Identifier: BSD-2-Clause
// Which fabrics and domains has this process opened? fi_getinfo(3) refers to them.
#include "instances.h"

#include <utility>

namespace weft::fabric {

struct Instances::Listed {
  std::mutex mutex;
  std::list<Instance> entries;
};

// Never destroyed: programs close their objects when they like, static ones' destructors included.
Instances::Listed& Instances::all() {
  static Listed* const listed = new Listed;
  return *listed;
}

Instances::Listing::Listing(Instance instance) {
  const std::lock_guard guard(all().mutex);
  entry_ = all().entries.insert(all().entries.end(), std::move(instance));
}

Instances::Listing::~Listing() {
  const std::lock_guard guard(all().mutex);
  all().entries.erase(entry_);
}

template <class Wanted>
std::optional<Instance> Instances::first(const Wanted& wanted) {
  const std::lock_guard guard(all().mutex);
  for (const Instance& instance : all().entries) {
    if (wanted(instance)) return instance;
  }
  return std::nullopt;
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
