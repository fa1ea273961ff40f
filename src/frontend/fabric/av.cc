// SPDX-License-Identifier: BSD-2-Clause
// What is an address vector to a libfabric program? fi_av(3)
#include "av.h"

#include <netinet/in.h>

#include <cstring>
#include <optional>

#include "boundary.h"
#include "c_enum.h"
#include "eq.h"
#include "fid_object.h"
#include "name.h"
#include "operations.h"
#include "os/name_lookup.h"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kInsertFlags = FI_MORE | FI_SYNC_ERR;

std::optional<os::SocketAddress> parse(const void* bytes) {
  auto address = address_at(bytes);
  if (!address || address.value().port() == 0 || address.value().is_any()) return std::nullopt;
  return std::move(address).value();
}

// One insertion call: where its numbers and errors go.
class Insertion {
 public:
  Insertion(Av& av, std::size_t count, fi_addr_t* numbers, std::uint64_t flags, void* context)
      : av_(av), numbers_(numbers), errors_(count, 0), context_(context) {
    if ((flags & FI_SYNC_ERR) != 0) sync_errors_ = static_cast<int*>(context);
  }

  void add(std::size_t i, const std::optional<os::SocketAddress>& address) {
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    if (address) {
      number = av_.addresses().insert(*address);
      ++inserted_;
    } else {
      errors_[i] = FI_EINVAL;
    }
    if (numbers_ != nullptr) numbers_[i] = number;
    if (sync_errors_ != nullptr) sync_errors_[i] = errors_[i];
  }

  int report() { return av_.report(context_, inserted_, errors_); }

 private:
  Av& av_;
  fi_addr_t* numbers_;
  int* sync_errors_ = nullptr;
  std::vector<int> errors_;
  std::size_t inserted_ = 0;
  void* context_;
};

int check_insert(Av& av, std::uint64_t flags, const void* context) {
  if ((flags & ~kInsertFlags) != 0) return -FI_EBADFLAGS;
  if (av.reports_events() && av.event_queue() == nullptr) return -FI_ENOEQ;
  if ((flags & FI_SYNC_ERR) != 0 && (av.reports_events() || context == nullptr)) return -FI_EINVAL;
  return 0;
}

int insert(fid_av* fid, const void* bytes, std::size_t count, fi_addr_t* numbers,
           std::uint64_t flags, void* context) {
  Av& av = Av::from(fid);
  if (const int wrong = check_insert(av, flags, context)) return wrong;
  if (bytes == nullptr && count != 0) return -FI_EINVAL;
  return at_c_border([&] {
    Insertion insertion(av, count, numbers, flags, context);
    const auto* at = static_cast<const std::byte*>(bytes);
    for (std::size_t i = 0; i < count; ++i) {
      insertion.add(i, parse(at));
      at += address_length(at);
    }
    return insertion.report();
  });
}

std::optional<os::SocketAddress> resolve(const char* node, const char* service) {
  os::NameQuery query;
  query.node = node;
  query.service = service;
  const auto found = os::look_up(query);
  if (!found || found.value().empty()) return std::nullopt;
  return parse(found.value().front().get());
}

int insertsvc(fid_av* fid, const char* node, const char* service, fi_addr_t* number,
              std::uint64_t flags, void* context) {
  Av& av = Av::from(fid);
  if (const int wrong = check_insert(av, flags, context)) return wrong;
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  return at_c_border([&] {
    Insertion insertion(av, 1, number, flags, context);
    insertion.add(0, resolve(node, service));
    return insertion.report();
  });
}

// The address `hosts` hosts and `ports` ports after `base`, or nothing when there is none.
std::optional<os::SocketAddress> offset_address(const os::SocketAddress& base, std::size_t hosts,
                                                std::size_t ports) {
  if (base.port() + ports > 0xffff) return std::nullopt;
  std::array<std::byte, sizeof(in6_addr)> host{};
  const std::span<const std::byte> bytes = base.host_bytes();
  std::ranges::copy(bytes, host.begin());
  for (std::size_t i = bytes.size(); i-- > 0 && hosts != 0; hosts >>= 8) {
    hosts += std::to_integer<std::size_t>(host[i]);
    host[i] = static_cast<std::byte>(hosts);
  }
  const auto port = static_cast<std::uint16_t>(base.port() + ports);
  return parse(os::SocketAddress::of_host(base.family(), host.data(), port, base.scope()).get());
}

int insertsym(fid_av* fid, const char* node, std::size_t nodes, const char* service,
              std::size_t services, fi_addr_t* numbers, std::uint64_t flags, void* context) {
  Av& av = Av::from(fid);
  if (const int wrong = check_insert(av, flags, context)) return wrong;
  if (node == nullptr || service == nullptr || nodes > 65536 || services > 65536) {
    return -FI_EINVAL;
  }
  return at_c_border([&] {
    const auto base = resolve(node, service);
    Insertion insertion(av, nodes * services, numbers, flags, context);
    for (std::size_t i = 0; i < nodes * services; ++i) {
      insertion.add(i, base ? offset_address(*base, i / services, i % services) : std::nullopt);
    }
    return insertion.report();
  });
}

int remove(fid_av* fid, fi_addr_t* numbers, std::size_t count, std::uint64_t flags) {
  Av& av = Av::from(fid);
  if (flags != 0) return -FI_EBADFLAGS;
  if (numbers == nullptr && count != 0) return -FI_EINVAL;
  return at_c_border([&] {
    int status = 0;
    for (std::size_t i = count; i-- > 0;) {
      if (!av.addresses().remove(numbers[i])) status = -FI_EINVAL;
    }
    return status;
  });
}

int lookup(fid_av* fid, fi_addr_t number, void* buffer, std::size_t* length) {
  if (length == nullptr || (buffer == nullptr && *length != 0)) return -FI_EINVAL;
  return at_c_border([&] {
    const auto entry = Av::from(fid).addresses().find(number);
    if (!entry) return -FI_EINVAL;
    give_address(entry->address, buffer, length);  // fi_av(3): the rest is cut off
    return 0;
  });
}

const char* straddr(fid_av*, const void* bytes, char* buffer, std::size_t* length) {
  if (bytes == nullptr || buffer == nullptr || length == nullptr) return nullptr;
  const auto address = address_at(bytes);
  if (!address) return nullptr;
  const char* scheme =
      address.value().family() == AF_INET6 ? "fi_sockaddr_in6://" : "fi_sockaddr_in://";
  const std::string text = scheme + address.value().text();
  const std::size_t room = *length;
  if (room != 0) {
    const std::size_t used = std::min(room - 1, text.size());
    std::memcpy(buffer, text.data(), used);
    buffer[used] = '\0';
  }
  *length = text.size() + 1;
  return buffer;
}

constexpr FidCalls kAvCalls{.close = close_object<Av>, .bind = bind_event_queue<Av, EventQueue>};

fi_ops_av* av_operations() {
  return operations_with<fi_ops_av>([](fi_ops_av& table) {
    table.insert = insert;
    table.insertsvc = insertsvc;
    table.insertsym = insertsym;
    table.remove = remove;
    table.lookup = lookup;
    table.straddr = straddr;
  });
}

}  // namespace

Av::Av(Domain& domain, const fi_av_attr& attributes, void* context)
    : ChildObject(FI_CLASS_AV, domain, context, fid_operations<kAvCalls>()),
      events_((attributes.flags & FI_EVENT) != 0),
      addresses_(attributes.count),
      listed_(domain.address_vectors(), *this) {
  ops = av_operations();
}

EventQueue* Av::event_queue() const {
  EventQueue* const own = eq_.get();
  return own != nullptr ? own : domain().default_eq();
}

int Av::report(void* context, std::size_t inserted, const std::vector<int>& errors) {
  if (!events_) return static_cast<int>(inserted);
  EventQueue& eq = *event_queue();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] == 0) continue;
    fi_eq_err_entry error{};
    error.fid = &fid;
    error.context = context;
    error.data = i;
    error.err = errors[i];
    eq.push_error(error);
  }
  const fi_eq_entry entry{&fid, context, inserted};
  eq.push(FI_AV_COMPLETE, &entry, sizeof entry);
  return 0;
}

int open_av(Domain& domain, fi_av_attr* attributes, fid_av** av, void* context) {
  // A vector shared by name is a later matter.
  if ((attributes->flags & ~FI_EVENT) != 0) return -FI_EBADFLAGS;
  if (attributes->name != nullptr || attributes->rx_ctx_bits != 0) return -FI_ENOSYS;
  const int type = number_of(attributes->type);
  if (type < FI_AV_UNSPEC || type > FI_AV_TABLE) return -FI_EINVAL;
  if (type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
  *av = new Av(domain, *attributes, context);
  return 0;
}

}  // namespace weft::fabric
