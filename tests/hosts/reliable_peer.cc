// SPDX-License-Identifier: BSD-2-Clause
// Does a reliable-datagram endpoint keep talking to its peers, in order and whole?
//
// usage: weft_reliable_peer ADDRESS PORT
//
// Says `at PORT`. Reads commands from its standard input, one a line:
//
//   to ADDRESS PORT   sends numbered messages there from now on
//   rest              sends no further messages
//   ask               prints `SENT RECEIVED BROKEN ENDED`: completed sends, messages received in
//                     order, messages that were damaged or did not continue the numbers of their
//                     sender, and sends that failed
//
// It ends with its standard input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "open_endpoint.h"

namespace {

constexpr std::size_t kMessageBytes = 1024;
constexpr std::size_t kReceives = 4096;
constexpr std::size_t kWindow = 64;
constexpr unsigned kPollsBetweenCommands = 16;
constexpr unsigned kRestMicroseconds = 50;

using weft::hosts::check;
using weft::hosts::Commands;
using weft::hosts::fail;

fi_info* info_for(const char* address, const char* port) {
  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG;
  hints->addr_format = FI_SOCKADDR_IN;
  hints->fabric_attr->prov_name = ::strdup("weft");
  fi_info* info = nullptr;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), address, port, FI_SOURCE, hints, &info));
  fi_freeinfo(hints);
  return info;
}

struct Message {
  std::uint64_t sender = 0;  // drawn at random by each process
  std::uint64_t number = 0;
  std::array<std::uint8_t, kMessageBytes - 16> fill{};
};
static_assert(sizeof(Message) == kMessageBytes);

// A buffer of a send or a receive; libfabric's context is its address.
struct Slot {
  bool receives = false;
  Message message;
};

class ReliablePeer {
 public:
  ReliablePeer(const char* address, const char* port)
      : slots_(kReceives + kWindow), open_(info_for(address, port), FI_CQ_FORMAT_CONTEXT) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].receives = i < kReceives;
      if (slots_[i].receives) {
        receive(slots_[i]);
      } else {
        free_.push_back(&slots_[i]);
      }
    }
  }
  ReliablePeer(const ReliablePeer&) = delete;
  ReliablePeer& operator=(const ReliablePeer&) = delete;

  in_port_t port() {
    sockaddr_in name{};
    std::size_t length = sizeof name;
    check("fi_getname", fi_getname(&open_.endpoint->fid, &name, &length));
    return ntohs(name.sin_port);
  }

  void command(const std::string& line) {
    std::istringstream words(line);
    std::string name, address;
    in_port_t port = 0;
    words >> name >> address >> port;
    if (name == "to") {
      aim(address.c_str(), port);
    } else if (name == "rest") {
      target_ = FI_ADDR_UNSPEC;
    } else if (name == "ask") {
      std::printf("%llu %llu %llu %llu\n", sent_, received_, broken_, ended_);
      std::fflush(stdout);
    } else {
      fail(name.c_str(), -FI_EINVAL);
    }
  }

  // True when there was something to do.
  bool step() {
    bool busy = false;
    while (target_ != FI_ADDR_UNSPEC && !free_.empty() && send()) busy = true;
    std::array<fi_cq_entry, 64> entries{};
    const ssize_t got = fi_cq_read(open_.completions, entries.data(), entries.size());
    for (ssize_t i = 0; i < got; ++i) {
      ended(*static_cast<Slot*>(entries[static_cast<std::size_t>(i)].op_context));
      busy = true;
    }
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      check("fi_cq_readerr", fi_cq_readerr(open_.completions, &error, 0));
      failed(*static_cast<Slot*>(error.op_context));
      busy = true;
    } else if (got < 0 && got != -FI_EAGAIN) {
      check("fi_cq_read", got);
    }
    return busy;
  }

 private:
  void aim(const char* address, in_port_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    if (::inet_pton(AF_INET, address, &name.sin_addr) != 1) fail(address, -FI_EINVAL);
    if (fi_av_insert(open_.addresses, &name, 1, &target_, 0, nullptr) != 1)
      fail(address, -FI_EINVAL);
  }

  void receive(Slot& slot) {
    check("fi_recv", fi_recv(open_.endpoint, &slot.message, sizeof slot.message, nullptr,
                             FI_ADDR_UNSPEC, &slot));
  }

  // False when there is no room.
  bool send() {
    Slot& slot = *free_.back();
    slot.message.sender = self_;
    slot.message.number = next_;
    slot.message.fill.fill(static_cast<std::uint8_t>(next_));
    const ssize_t status =
        fi_send(open_.endpoint, &slot.message, sizeof slot.message, nullptr, target_, &slot);
    if (status == -FI_EAGAIN) return false;
    ++next_;
    if (status != 0) {
      ++ended_;
      return false;
    }
    free_.pop_back();
    return true;
  }

  void ended(Slot& slot) {
    if (!slot.receives) {
      ++sent_;
      free_.push_back(&slot);
      return;
    }
    judge(slot.message);
    receive(slot);
  }

  void failed(Slot& slot) {
    if (slot.receives) {
      ++broken_;
      return receive(slot);
    }
    ++ended_;
    free_.push_back(&slot);
  }

  void judge(const Message& message) {
    const auto [next, is_new] = next_of_.try_emplace(message.sender, message.number);
    const bool whole = std::all_of(
        message.fill.begin(), message.fill.end(),
        [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(message.number); });
    if (whole && message.number == next->second) {
      ++received_;
    } else {
      ++broken_;
    }
    next->second = message.number + 1;
  }

  std::vector<Slot> slots_;
  weft::hosts::OpenEndpoint open_;  // closes before its buffers go
  std::vector<Slot*> free_;         // of sends
  fi_addr_t target_ = FI_ADDR_UNSPEC;
  const std::uint64_t self_ = std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::uint64_t> next_of_;  // by sender
  unsigned long long sent_ = 0, received_ = 0, broken_ = 0, ended_ = 0;
};

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  ReliablePeer peer(words[1], words[2]);
  std::printf("at %u\n", unsigned{peer.port()});
  std::fflush(stdout);
  Commands commands;
  for (unsigned steps = 0;; ++steps) {
    const bool busy = peer.step();
    if (!busy) ::usleep(kRestMicroseconds);
    if ((!busy || steps % kPollsBetweenCommands == 0) && !commands.read(peer)) return 0;
  }
}
