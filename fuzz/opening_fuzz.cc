// SPDX-License-Identifier: BSD-2-Clause
// What can a program do to the libfabric provider by what it opens, binds and controls objects
// with? Input: a script of such calls with damaged attributes and with objects of any class, closed
// in any order. Pointers lead to memory of the right type that is as long as the call says.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "control_calls.h"
#include "damaged_info.h"
#include "input.h"
#include "loaded_provider.h"
#include "opened_objects.h"

namespace {

using namespace weft;
using fuzz::Bytes;
using fuzz::check_count;
using fuzz::check_status;
using fuzz::DamagedInfo;
using fuzz::draw_flags;
using fuzz::draw_number;
using fuzz::Info;
using fuzz::Input;
using fuzz::Provider;
using fuzz::require;

constexpr int kSteps = 24;

// A program that makes one call after another.
class Program {
 public:
  Program(const Provider& provider, Input& input) : provider_(provider), input_(input) {}
  ~Program() { objects_.close_all(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void step() {
    static constexpr void (Program::*kCalls[])() = {
        &Program::get_info,       &Program::open_fabric,
        &Program::open_domain,    &Program::open_endpoint,
        &Program::open_passive,   &Program::open_cq,
        &Program::open_counter,   &Program::open_av,
        &Program::open_eq,        &Program::open_wait_set,
        &Program::open_poll_set,  &Program::open_shared_transmit,
        &Program::open_shared_rx, &Program::register_memory,
        &Program::bind,           &Program::bind,
        &Program::bind,           &Program::control,
        &Program::enable,         &Program::enable_whole,
        &Program::alias,          &Program::operations,
        &Program::option,         &Program::name,
        &Program::listen,         &Program::connect,
        &Program::accept,         &Program::end_connection,
        &Program::join,           &Program::insert,
        &Program::read,           &Program::poll,
        &Program::close,          &Program::not_offered};
    (this->*kCalls[input_.below(std::size(kCalls))])();
  }

 private:
  // Calls open(&object) and keeps an object that it opens.
  template <class Fid, class Open>
  Fid* keep(std::size_t kind, Open open) {
    Fid* opened = nullptr;
    if (check_status(open(&opened)) != 0) return nullptr;
    require(opened != nullptr && opened->fid.fclass == kind, "success without an object");
    objects_.add(&opened->fid);
    return opened;
  }
  template <class Fid>
  Fid* one(std::size_t kind) {
    return objects_.one<Fid>(input_, kind);
  }
  template <class Fid>
  Fid* one_or_null(std::size_t kind) {
    return objects_.one_or_null<Fid>(input_, kind);
  }
  // An open fabric or domain; the usual one where there is none.
  fid_fabric* fabric() {
    if (auto* const open = one<fid_fabric>(FI_CLASS_FABRIC)) return open;
    const fi_info& offer = provider_.offer(input_);
    return keep<fid_fabric>(FI_CLASS_FABRIC, [&](fid_fabric** out) {
      return provider_.open(offer.fabric_attr, out, this);
    });
  }
  fid_domain* domain() {
    if (auto* const open = one<fid_domain>(FI_CLASS_DOMAIN)) return open;
    fid_fabric* const on = fabric();
    if (on == nullptr) return nullptr;
    DamagedInfo info(provider_.offer(input_));
    info.get()->domain_attr->name = nullptr;  // any of the fabric's
    return keep<fid_domain>(FI_CLASS_DOMAIN,
                            [&](fid_domain** out) { return fi_domain(on, info.get(), out, this); });
  }
  // An endpoint, a shared receive context, or null.
  fid_ep* handle() {
    auto* const shared = input_.byte() >= 0xc0 ? one<fid_ep>(FI_CLASS_SRX_CTX) : nullptr;
    return shared != nullptr ? shared : one<fid_ep>(FI_CLASS_EP);
  }
  fid* endpoint_of_any_kind() {
    if (input_.byte() >= 0xa0) {
      if (auto* const passive = one<fid_pep>(FI_CLASS_PEP)) return &passive->fid;
    }
    fid_ep* const ep = handle();
    return ep != nullptr ? &ep->fid : nullptr;
  }

  DamagedInfo::Named named() {
    static fid_fabric no_fabric{};
    static fid_domain no_domain{};
    const bool is_stranger = input_.byte() >= 0xc0;
    return {objects_.any(input_), is_stranger ? &no_fabric : one<fid_fabric>(FI_CLASS_FABRIC),
            is_stranger ? &no_domain : one<fid_domain>(FI_CLASS_DOMAIN)};
  }
  // An offer or a connection request, damaged.
  std::unique_ptr<DamagedInfo> damaged_info() {
    const bool takes_request = !requests_.empty() && input_.byte() >= 0x80;
    auto info =
        std::make_unique<DamagedInfo>(takes_request ? *requests_.back() : provider_.offer(input_));
    info->damage_some(input_, named());
    return info;
  }
  std::uint32_t version() {
    constexpr std::uint32_t kVersions[] = {FI_VERSION(1, 17), FI_VERSION(1, 0), FI_VERSION(1, 4),
                                           FI_VERSION(1, 5), FI_VERSION(2, 6)};
    const std::uint8_t choice = input_.byte();
    if (choice >= 0xf0) return static_cast<std::uint32_t>(draw_number(input_));
    return kVersions[choice < 0x80 ? 0 : choice % std::size(kVersions)];
  }

  void get_info() {
    constexpr const char* kNodes[] = {nullptr, "127.0.0.1", "::1", "0.0.0.0",
                                      "::",    "224.0.0.1", ""};
    constexpr const char* kServices[] = {nullptr, "0", "47000", "65535", "65536", "-1", ""};
    const char* const node = kNodes[input_.below(std::size(kNodes))];
    const char* const service = kServices[input_.below(std::size(kServices))];
    const auto hints = damaged_info();
    const bool has_hints = input_.byte() < 0xf0;
    const std::uint32_t asked = version();
    const std::uint64_t flags = draw_flags(input_) | (input_.byte() >= 0x80 ? FI_NUMERICHOST : 0);
    const Info found =
        provider_.ask(asked, node, service, flags, has_hints ? hints->get() : nullptr);
    if (found != nullptr) open_answer(*found);
  }
  // fi_getinfo(3): what it answers can be opened, unless another socket has the port.
  void open_answer(fi_info& info) {
    auto* const on = keep<fid_fabric>(FI_CLASS_FABRIC, [&](fid_fabric** out) {
      return provider_.open(info.fabric_attr, out, this);
    });
    require(on != nullptr, "an answer of fi_getinfo without a fabric");
    auto* const domain = keep<fid_domain>(
        FI_CLASS_DOMAIN, [&](fid_domain** out) { return fi_domain(on, &info, out, this); });
    require(domain != nullptr, "an answer of fi_getinfo without a domain");
    if (info.handle != nullptr) return;
    fid_ep* ep = nullptr;
    const int status = fi_endpoint(domain, &info, &ep, this);
    require(status == 0 || status == -FI_EADDRINUSE || status == -FI_EACCES,
            "an answer of fi_getinfo without an endpoint");
    if (status == 0) objects_.add(&ep->fid);
  }

  void open_fabric() {
    const auto info = damaged_info();
    if (info->fabric() != nullptr) info->fabric()->api_version = version();
    keep<fid_fabric>(FI_CLASS_FABRIC,
                     [&](fid_fabric** out) { return provider_.open(info->fabric(), out, this); });
  }
  void open_domain() {
    fid_fabric* const on = fabric();
    const auto info = damaged_info();
    const std::uint64_t flags = draw_flags(input_);
    if (on == nullptr) return;
    keep<fid_domain>(FI_CLASS_DOMAIN, [&](fid_domain** out) {
      return fi_domain2(on, info->get(), out, flags, this);
    });
  }
  void open_endpoint() {
    fid_domain* const in = domain();
    const auto info = damaged_info();
    const std::uint64_t flags = draw_flags(input_);
    if (in == nullptr) return;
    keep<fid_ep>(FI_CLASS_EP,
                 [&](fid_ep** out) { return fi_endpoint2(in, info->get(), out, flags, this); });
  }
  void open_passive() {
    fid_fabric* const on = fabric();
    const auto info = damaged_info();
    if (on == nullptr) return;
    keep<fid_pep>(FI_CLASS_PEP,
                  [&](fid_pep** out) { return fi_passive_ep(on, info->get(), out, this); });
  }

  // Attributes, a few of which are damaged, or none at all.
  template <class Attributes, class... Member>
  Attributes* damaged(Attributes& attributes, Member Attributes::*... member) {
    for (std::uint32_t i = input_.below(3); i != 0; --i) {
      fuzz::damage_one(input_, attributes.*member...);
    }
    return input_.byte() >= 0xf0 ? nullptr : &attributes;
  }
  template <class Attributes>
  void draw_wait(Attributes& attributes) {
    constexpr fi_wait_obj kUsual[] = {FI_WAIT_NONE,       FI_WAIT_UNSPEC, FI_WAIT_SET,   FI_WAIT_FD,
                                      FI_WAIT_MUTEX_COND, FI_WAIT_YIELD,  FI_WAIT_POLLFD};
    attributes.wait_obj = kUsual[input_.below(std::size(kUsual))];
    attributes.wait_set = one_or_null<fid_wait>(FI_CLASS_WAIT);
  }
  void open_cq() {
    fid_domain* const in = domain();
    fi_cq_attr attributes{};
    draw_wait(attributes);
    auto* const wanted =
        damaged(attributes, &fi_cq_attr::size, &fi_cq_attr::flags, &fi_cq_attr::format,
                &fi_cq_attr::wait_obj, &fi_cq_attr::signaling_vector, &fi_cq_attr::wait_cond);
    if (in == nullptr) return;
    keep<fid_cq>(FI_CLASS_CQ, [&](fid_cq** out) { return fi_cq_open(in, wanted, out, this); });
  }
  void open_counter() {
    fid_domain* const in = domain();
    fi_cntr_attr attributes{};
    draw_wait(attributes);
    auto* const wanted =
        damaged(attributes, &fi_cntr_attr::events, &fi_cntr_attr::wait_obj, &fi_cntr_attr::flags);
    if (in == nullptr) return;
    keep<fid_cntr>(FI_CLASS_CNTR,
                   [&](fid_cntr** out) { return fi_cntr_open(in, wanted, out, this); });
  }
  void open_av() {
    fid_domain* const in = domain();
    fi_av_attr attributes{};
    const std::string name = fuzz::draw_name(input_, "vector");
    if (input_.byte() >= 0xf0) attributes.name = name.c_str();
    auto* const wanted = damaged(attributes, &fi_av_attr::type, &fi_av_attr::rx_ctx_bits,
                                 &fi_av_attr::count, &fi_av_attr::ep_per_node, &fi_av_attr::flags);
    if (in == nullptr) return;
    keep<fid_av>(FI_CLASS_AV, [&](fid_av** out) { return fi_av_open(in, wanted, out, this); });
  }
  void open_eq() {
    fid_fabric* const on = fabric();
    fi_eq_attr attributes{};
    draw_wait(attributes);
    if (input_.byte() >= 0x80) attributes.flags = FI_WRITE;
    auto* const wanted = damaged(attributes, &fi_eq_attr::size, &fi_eq_attr::flags,
                                 &fi_eq_attr::wait_obj, &fi_eq_attr::signaling_vector);
    if (on == nullptr) return;
    keep<fid_eq>(FI_CLASS_EQ, [&](fid_eq** out) { return fi_eq_open(on, wanted, out, this); });
  }
  void open_wait_set() {
    fid_fabric* const on = fabric();
    fi_wait_attr attributes{FI_WAIT_UNSPEC, 0};
    auto* const wanted = damaged(attributes, &fi_wait_attr::wait_obj, &fi_wait_attr::flags);
    if (on == nullptr) return;
    keep<fid_wait>(FI_CLASS_WAIT, [&](fid_wait** out) { return fi_wait_open(on, wanted, out); });
  }
  void open_poll_set() {
    fid_domain* const in = domain();
    fi_poll_attr attributes{};
    auto* const wanted = damaged(attributes, &fi_poll_attr::flags);
    if (in == nullptr) return;
    keep<fid_poll>(FI_CLASS_POLL, [&](fid_poll** out) { return fi_poll_open(in, wanted, out); });
  }
  void open_shared_transmit() {
    fid_domain* const in = domain();
    const auto info = damaged_info();
    const bool has_attributes = input_.byte() < 0xc0;
    if (in == nullptr) return;
    keep<fid_stx>(FI_CLASS_STX_CTX, [&](fid_stx** out) {
      return fi_stx_context(in, has_attributes ? info->tx() : nullptr, out, this);
    });
  }
  void open_shared_rx() {
    fid_domain* const in = domain();
    const auto info = damaged_info();
    const bool has_attributes = input_.byte() < 0xc0;
    if (in == nullptr) return;
    keep<fid_ep>(FI_CLASS_SRX_CTX, [&](fid_ep** out) {
      return fi_srx_context(in, has_attributes ? info->rx() : nullptr, out, this);
    });
  }

  std::uint64_t draw_access() {
    const std::uint64_t usual =
        FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    return input_.byte() < 0x80 ? usual : draw_flags(input_);
  }
  void register_memory() {
    fid_domain* const in = domain();
    const auto ranges = ranges_.draw(input_);
    const std::uint64_t access = draw_access();
    const std::uint64_t offset = input_.byte() < 0xe0 ? 0 : draw_number(input_);
    const std::uint64_t key = draw_number(input_);
    const std::uint64_t flags = input_.byte() < 0x80 ? 0 : draw_flags(input_);
    const std::uint8_t call = input_.byte() % 3;
    const Bytes authorization = fuzz::draw_bytes(input_, 70);
    fi_mr_attr attributes{};
    attributes.mr_iov = ranges.empty() ? nullptr : ranges.data();
    attributes.iov_count = ranges.size();
    attributes.access = access;
    attributes.offset = offset;
    attributes.requested_key = key;
    attributes.context = this;
    if (input_.byte() >= 0xc0) {
      attributes.auth_key = const_cast<std::uint8_t*>(authorization.data());
      attributes.auth_key_size = authorization.size();
    }
    fuzz::damage(input_, attributes.iface);
    if (in == nullptr) return;
    keep<fid_mr>(FI_CLASS_MR, [&](fid_mr** out) {
      if (call == 0) return fi_mr_regattr(in, &attributes, flags, out);
      if (call == 1 || ranges.empty()) {
        return fi_mr_regv(in, attributes.mr_iov, ranges.size(), access, offset, key, flags, out,
                          this);
      }
      return fi_mr_reg(in, ranges[0].iov_base, ranges[0].iov_len, access, offset, key, flags, out,
                       this);
    });
  }

  void bind() {
    fid* const object = input_.byte() < 0x80 ? endpoint_of_any_kind() : objects_.any(input_);
    fid* const other = objects_.any(input_);
    constexpr std::uint64_t kUsual[] = {0,       FI_TRANSMIT | FI_RECV, FI_SEND,
                                        FI_RECV, FI_REMOTE_WRITE,       FI_REG_MR};
    const std::uint8_t choice = input_.byte();
    const std::uint64_t flags =
        choice < 0xc0 ? kUsual[choice % std::size(kUsual)] : draw_flags(input_);
    if (object == nullptr || !has_table(*object)) return;
    check_status(object->ops->bind(object, choice >= 0xf8 ? nullptr : other, flags));
  }
  static bool has_table(const fid& object) { return object.ops != nullptr; }

  void enable() {
    if (input_.byte() >= 0x80) {
      if (auto* const mr = one<fid_mr>(FI_CLASS_MR)) check_status(fi_mr_enable(mr));
    } else if (fid_ep* const ep = handle()) {
      check_status(fi_enable(ep));
    }
  }
  // Binds all that an endpoint needs before it is enabled.
  void enable_whole() {
    auto* const ep = one<fid_ep>(FI_CLASS_EP);
    if (ep == nullptr) return;
    constexpr std::pair<std::size_t, std::uint64_t> kNeeded[] = {
        {FI_CLASS_CQ, FI_TRANSMIT | FI_RECV},
        {FI_CLASS_AV, 0},
        {FI_CLASS_EQ, 0},
        {FI_CLASS_STX_CTX, 0},
        {FI_CLASS_SRX_CTX, 0},
        {FI_CLASS_CNTR, FI_SEND}};
    for (const auto& [kind, flags] : kNeeded) {
      auto* const other = objects_.one<fid_cq>(input_, kind);
      if (other != nullptr) check_status(fi_ep_bind(ep, &other->fid, flags));
    }
    check_status(fi_enable(ep));
  }

  void alias() {
    fid_ep* const ep = handle();
    if (ep == nullptr) return;
    const std::uint64_t direction = input_.byte() < 0x80 ? +FI_TRANSMIT : +FI_RECV;
    const std::uint64_t flags = direction ^ draw_flags(input_);
    keep<fid_ep>(FI_CLASS_EP, [&](fid_ep** out) { return fi_ep_alias(ep, out, flags); });
  }

  // fi_open_ops(3) and fi_set_ops(3).
  void operations() {
    fid* const object = objects_.any(input_);
    const std::string drawn = fuzz::draw_name(input_, "weft_domain");
    const char* const name = input_.byte() >= 0xf0 ? nullptr : drawn.c_str();
    const std::uint64_t flags = draw_flags(input_);
    const bool sets = input_.byte() >= 0x80;
    void* table = nullptr;
    void** const place = input_.byte() >= 0xf0 ? nullptr : &table;
    if (object == nullptr) return;
    if (sets) {
      check_status(fi_set_ops(object, name, flags, place, this));
    } else {
      const int status = check_status(fi_open_ops(object, name, flags, place, this));
      require(status != 0 || table != nullptr, "success without a table");
    }
  }

  void control() { controls_.make(); }

  void option() {
    fid* const object = endpoint_of_any_kind();
    const int level = input_.byte() < 0xe0 ? int{FI_OPT_ENDPOINT} : int{input_.byte()};
    const int name = input_.byte() < 0xe0 ? static_cast<int>(input_.below(16))
                                          : static_cast<int>(draw_number(input_));
    Bytes value(input_.byte() < 0x80 ? sizeof(std::size_t) : input_.below(20));
    std::size_t length = value.size();
    const bool has_value = input_.byte() < 0xe0;
    const bool has_length = input_.byte() < 0xe0;
    const bool sets = input_.byte() >= 0x80;
    input_.bytes(value.data(), value.size());
    if (object == nullptr) return;
    if (sets) {
      check_status(fi_setopt(object, level, name, has_value ? value.data() : nullptr, length));
    } else {
      check_status(fi_getopt(object, level, name, has_value ? value.data() : nullptr,
                             has_length ? &length : nullptr));
    }
  }
  void name() {
    fid* const object = endpoint_of_any_kind();
    Bytes address = fuzz::draw_part_of_address(input_);
    std::size_t length = address.size();
    const bool has_length = input_.byte() < 0xe0;
    const std::uint8_t call = input_.byte() % 3;
    if (object == nullptr) return;
    if (call == 0) {
      check_status(fi_setname(object, address.data(), length));
    } else if (call == 1 || object->fclass == FI_CLASS_PEP) {
      check_status(fi_getname(object, address.data(), has_length ? &length : nullptr));
    } else {
      check_status(fi_getpeer(reinterpret_cast<fid_ep*>(object), address.data(),
                              has_length ? &length : nullptr));
    }
  }

  void listen() {
    auto* const passive = one<fid_pep>(FI_CLASS_PEP);
    auto* const eq = one_or_null<fid_eq>(FI_CLASS_EQ);
    if (passive == nullptr) return;
    if (eq != nullptr) check_status(fi_pep_bind(passive, &eq->fid, 0));
    check_status(fi_listen(passive));
  }
  Bytes connection_data() { return fuzz::draw_bytes(input_, 300); }
  // To a listener, or anywhere on this host.
  void connect() {
    fid_ep* const ep = handle();
    auto* const passive = one_or_null<fid_pep>(FI_CLASS_PEP);
    Bytes address = fuzz::draw_address(input_);
    const Bytes data = connection_data();
    if (ep == nullptr) return;
    if (passive != nullptr) {
      std::array<std::uint8_t, 32> name{};
      std::size_t length = name.size();
      if (check_status(fi_getname(&passive->fid, name.data(), &length)) == 0) {
        address.assign(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(length));
      }
    } else if (address[0] == AF_INET) {
      address[4] = 127;  // no group: this is no program that sends to others
    }
    check_status(fi_connect(ep, address.data(), data.data(), data.size()));
  }
  void accept() {
    fid_ep* const ep = handle();
    const Bytes data = connection_data();
    if (ep != nullptr) check_status(fi_accept(ep, data.data(), data.size()));
  }
  void end_connection() {
    fid_ep* const ep = handle();
    auto* const passive = one<fid_pep>(FI_CLASS_PEP);
    const Bytes data = connection_data();
    fid* const request = input_.byte() < 0xc0 && !requests_.empty() ? requests_.back()->handle
                                                                    : objects_.any(input_);
    if (input_.byte() >= 0x80) {
      if (passive != nullptr) check_status(fi_reject(passive, request, data.data(), data.size()));
    } else if (ep != nullptr) {
      check_status(fi_shutdown(ep, draw_flags(input_)));
    }
  }
  void join() {
    fid_ep* const ep = handle();
    const Bytes address = fuzz::draw_address(input_);
    const std::uint64_t flags = draw_flags(input_);
    const bool has_address = input_.byte() < 0xf0;
    if (ep == nullptr) return;
    keep<fid_mc>(FI_CLASS_MC, [&](fid_mc** out) {
      return fi_join(ep, has_address ? address.data() : nullptr, flags, out, this);
    });
  }
  void insert() {
    auto* const av = one<fid_av>(FI_CLASS_AV);
    const Bytes address = fuzz::draw_address(input_);
    const std::uint64_t flags = draw_flags(input_);
    int error = 0;
    fi_addr_t number = 0;
    if (av == nullptr) return;
    const bool has_place = input_.byte() < 0xe0;
    check_count(fi_av_insert(av, address.data(), 1, has_place ? &number : nullptr, flags, &error));
  }

  void read() {
    if (auto* const eq = one<fid_eq>(FI_CLASS_EQ)) read_events(*eq);
    if (auto* const cq = one<fid_cq>(FI_CLASS_CQ)) {
      std::array<fi_cq_tagged_entry, 4> entries{};
      check_count(fi_cq_read(cq, entries.data(), entries.size()));
      fi_cq_err_entry error{};
      check_count(fi_cq_readerr(cq, &error, 0));
    }
    if (auto* const counter = one<fid_cntr>(FI_CLASS_CNTR)) fi_cntr_read(counter);
  }
  void read_events(fid_eq& eq) {
    std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + 512> place{};
    std::uint32_t event = 0;
    const auto length = check_count(fi_eq_read(&eq, &event, place.data(), place.size(), 0));
    if (length >= static_cast<std::int64_t>(sizeof(fi_eq_cm_entry)) && event == FI_CONNREQ) {
      fi_info* request = nullptr;
      std::memcpy(&request, place.data() + offsetof(fi_eq_cm_entry, info), sizeof request);
      requests_.emplace_back(request);
    }
    fi_eq_err_entry error{};
    check_count(fi_eq_readerr(&eq, &error, 0));
    const Bytes written = fuzz::draw_bytes(input_, 20);
    if (input_.byte() < 0xf0) return;
    check_count(
        fi_eq_write(&eq, FI_SHUTDOWN + 1, written.data(), written.size(), draw_flags(input_)));
  }
  void poll() {
    auto* const poll_set = one<fid_poll>(FI_CLASS_POLL);
    auto* const wait_set = one<fid_wait>(FI_CLASS_WAIT);
    auto* const on = one<fid_fabric>(FI_CLASS_FABRIC);
    fid* object = objects_.any(input_);
    const std::uint64_t flags = draw_flags(input_);
    std::array<void*, 2> contexts{};
    if (poll_set != nullptr) {
      check_status(input_.byte() < 0xc0 ? fi_poll_add(poll_set, object, flags)
                                        : fi_poll_del(poll_set, object, flags));
      check_count(fi_poll(poll_set, contexts.data(), static_cast<int>(contexts.size())));
    }
    if (wait_set != nullptr) check_status(fi_wait(wait_set, 0));
    if (on != nullptr) check_status(fi_trywait(on, &object, 1));
  }
  void close() {
    fid* const object = objects_.any(input_);
    if (object == nullptr) return;
    // Their requests cannot be accepted any more.
    if (object->fclass == FI_CLASS_PEP || object->fclass == FI_CLASS_DOMAIN) requests_.clear();
    objects_.close(object);
  }

  void not_offered() {
    fid_domain* const in = domain();
    const auto info = damaged_info();
    auto* const ep = one<fid_ep>(FI_CLASS_EP);
    auto* const av = one<fid_av>(FI_CLASS_AV);
    if (in == nullptr) return;
    fid_ep* made = nullptr;
    require(fi_scalable_ep(in, info->get(), &made, this) == -FI_ENOSYS, "a scalable endpoint");
    fi_collective_attr collective{};
    const auto operation = static_cast<fi_collective_op>(input_.byte() % 8);
    require(fi_query_collective(in, operation, &collective, draw_flags(input_)) == -FI_ENOSYS,
            "a collective operation");
    fi_av_set_attr members{};
    fid_av_set* set = nullptr;
    if (av != nullptr) require(fi_av_set(av, &members, &set, this) == -FI_ENOSYS, "a set of peers");
    // C++ passes no others on; the enumerations end before 32.
    fi_atomic_attr atomic{};
    const auto type = static_cast<fi_datatype>(input_.byte() % 32);
    const auto action = static_cast<fi_op>(input_.byte() % 32);
    check_status(in->ops->query_atomic(in, type, action, &atomic, draw_flags(input_)));
    if (ep == nullptr) return;
    require(fi_tx_context(ep, input_.byte(), info->tx(), &made, this) == -FI_ENOSYS, "a context");
    require(fi_rx_context(ep, input_.byte(), info->rx(), &made, this) == -FI_ENOSYS, "a context");
  }

  const Provider& provider_;
  Input& input_;
  std::vector<Info> requests_;
  fuzz::Ranges ranges_;
  fuzz::OpenedObjects objects_;
  fuzz::ControlCalls controls_{input_, objects_, ranges_};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Provider provider;
  Input input(data, size);
  Program program(provider, input);
  for (int steps = 0; steps < kSteps && !input.empty(); ++steps) program.step();
  return 0;
}
