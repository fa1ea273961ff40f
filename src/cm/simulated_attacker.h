// SPDX-License-Identifier: BSD-2-Clause
// An attacker that sees no packet but guesses: it forges any source address, and knows all that can
// be guessed of a connection, but not its transaction id.
#pragma once

#include "simulated_world.h"

namespace weft::cm::testing {

class Attacker {
 public:
  explicit Attacker(World& world) : world_(world), random_(world.network().random()()) {}

  // The address of a host that answers nothing.
  static Remote silent_host(unsigned number) {
    return {os::address_of("192.0.2." + std::to_string(1 + number % 250),
                           static_cast<std::uint16_t>(50'000 + number / 250)),
            Carrier::kPackets};
  }
  // So many forgeries, at any time of a period.
  void attack(unsigned count, nanoseconds period) {
    for (unsigned i = 0; i < count; ++i) {
      const auto victim = static_cast<unsigned>(below(world_.processes()));
      world_.at(nanoseconds(below(static_cast<std::uint64_t>(period.count()))),
                [this, victim] { forge(victim); });
    }
  }
  // One of them.
  void forge(unsigned victim) {
    const Process* const process = world_.process(victim);
    if (process == nullptr) return;
    std::vector<const End*> known;
    for (const End& end : world_.ledger().ends()) {
      if (end.life == process->life && end.id != 0) known.push_back(&end);
    }
    const std::uint64_t choice = below(10);
    if (choice < 6 && !known.empty()) return forge_about(victim, *known[below(known.size())]);
    if (choice < 8) return send(any_host(victim), victim, {0, random_(), 0, draw_req(known)});
    if (choice < 9) return send(any_host(victim), victim, {0, random_(), 0, draw_sidr()});
    Bytes junk(below(600));
    for (std::byte& byte : junk) byte = static_cast<std::byte>(random_());
    inject(any_host(victim), victim, junk);
  }
  void send(const Remote& from, unsigned victim, const wire::CmMad& mad) {
    const auto bytes = wire::write_cm(mad);
    inject(from, victim, {bytes.begin(), bytes.end()});
  }

 private:
  // An attacker on another host has no access to mailboxes.
  void inject(const Remote& from, unsigned victim, const Bytes& bytes) {
    const Remote to{world_.shared().address(victim), Carrier::kPackets};
    world_.network().inject({from.address, Carrier::kPackets}, to, bytes);
  }
  std::uint64_t below(std::uint64_t end) { return up_to(random_, end - 1); }
  bool maybe(double probability) { return happens(random_, probability); }

  Remote any_host(unsigned victim) {
    if (maybe(0.3)) return silent_host(static_cast<unsigned>(below(10'000)));
    return world_.shared().remote(victim, static_cast<unsigned>(below(world_.processes())));
  }
  std::uint32_t any_id() { return static_cast<std::uint32_t>(random_()); }
  // A message of the peer of that end.
  void forge_about(unsigned victim, const End& end) {
    const Remote from = maybe(0.9) ? end.peer : any_host(victim);
    const std::uint32_t remote_id = maybe(0.9) ? end.id : any_id();
    std::uint32_t local_id = end.other != nullptr && maybe(0.9) ? end.other->id : any_id();
    const auto id = [&](auto message) {
      message.local_id = local_id;
      message.remote_id = remote_id;
      return message;
    };
    wire::CmMad mad;
    mad.transaction = random_();
    switch (below(8)) {
      case 0: {
        auto rej = id(wire::CmRej{});
        rej.message = static_cast<std::uint8_t>(below(3));
        rej.reason = static_cast<wire::CmReason>(1 + below(35));
        mad.message = rej;
        break;
      }
      case 1: {
        auto rep = id(wire::CmRep{});
        rep.qpn = any_id() & 0xFF'FFFF;
        rep.ca_guid = end.other != nullptr && maybe(0.5) ? end.other->guid : random_();
        mad.message = rep;
        break;
      }
      case 2: {
        // Of an end that is not watched a DREQ counts without transaction id.
        if (!end.watched) local_id ^= static_cast<std::uint32_t>(1 + below(0xFFFF));
        auto dreq = id(wire::CmDreq{});
        dreq.remote_qpn = end.qpn();
        mad.message = dreq;
        break;
      }
      case 3: {
        auto mra = id(wire::CmMra{});
        mra.message = static_cast<std::uint8_t>(below(3));
        mra.service_timeout = static_cast<std::uint8_t>(below(32));
        mad.message = mra;
        break;
      }
      case 4: {
        auto lap = id(wire::CmLap{});
        lap.remote_qpn = end.qpn();
        mad.message = lap;
        break;
      }
      case 5: {
        auto apr = id(wire::CmApr{});
        apr.status = static_cast<std::uint8_t>(below(3));
        mad.message = apr;
        break;
      }
      case 6:
        mad.message = id(wire::CmDrep{});
        break;
      default:
        mad.message = id(wire::CmRtu{});
        break;
    }
    send(from, victim, mad);
  }
  // A REQ like that of an end that exists, or of another instance at its address.
  wire::CmReq draw_req(const std::vector<const End*>& known) {
    const End* const like = known.empty() ? nullptr : known[below(known.size())]->other;
    wire::CmReq req;
    req.local_id = like != nullptr && maybe(0.5) ? like->id : any_id();
    req.service = SimulatedUser::kFirstService + below(SimulatedUser::kServices);
    req.ca_guid = like != nullptr && maybe(0.5) ? like->guid : random_();
    req.qpn = like != nullptr && maybe(0.5) ? like->qpn() : any_id() & 0xFF'FFFF;
    return req;
  }
  wire::CmSidrReq draw_sidr() {
    wire::CmSidrReq req;
    req.request = any_id();
    req.service = SimulatedUser::kFirstService + below(SimulatedUser::kServices);
    return req;
  }

  World& world_;
  Random random_;
};

}  // namespace weft::cm::testing
