// SPDX-License-Identifier: BSD-2-Clause
// What becomes of connections that one process asks for and another one accepts?
//
// usage: weft_connecting_peer ADDRESS PORT [listen]
//
// Says `at PORT`. With `listen` it accepts requests at that port, except those whose private data
// plan a rejection, and sends back each message; without, PORT is 0. Reads commands from its
// standard input, one a line:
//
//   cycle ADDRESS PORT SEED   makes connections to that listener, one after the other, each with
//                             messages and an end that are drawn from SEED; says `talks` when the
//                             first of them has ended as planned, and `ended MS REASON` when one
//                             does not, that many milliseconds after it was asked for: no more
//                             are made then
//   rest                      finishes the present connection, says `rests`, and makes no more
//   stream ADDRESS PORT       makes one connection and exchanges messages without end; says `ended`
//                             as above
//   hold, go                  sends no more messages, and sends them again
//   ask                       prints nine numbers: requests that were reported; those of them of
//                             which fi_accept succeeded; connections established; endpoints open
//                             now; FI_SHUTDOWN events; error events; those of them with
//                             FI_ECONNABORTED; messages received whole; messages received damaged
//
// It ends with its standard input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "commands.h"
#include "open_endpoint.h"

namespace {

using Clock = std::chrono::steady_clock;
using weft::hosts::check;
using weft::hosts::Commands;
using weft::hosts::fail;

constexpr unsigned kRestMicroseconds = 50;
constexpr std::size_t kMostData = 256;

enum class Ending : std::uint32_t {
  kRequesterShutsDown,
  kRequesterCloses,
  kAcceptorShutsDown,
  kAcceptorCloses,
  kRejected,
};
constexpr std::uint32_t kEndings = 5;

// What both ends do with a connection: the private data of its request.
struct Plan {
  std::uint32_t messages = 0;
  std::uint32_t bytes = 0;
  Ending ending = Ending::kRequesterCloses;
};

Plan draw_plan(std::mt19937_64& random) {
  constexpr std::array<std::uint32_t, 3> kSizes{8, 4000, 300'000};
  return {static_cast<std::uint32_t>(random() % 4), kSizes[random() % kSizes.size()],
          static_cast<Ending>(random() % kEndings)};
}

struct Counts {
  std::size_t requests = 0, accepted = 0, connected = 0, ended = 0, failed = 0, aborted = 0;
  std::size_t messages = 0, broken = 0;
};

// One connection and the messages on it: the requester sends, the acceptor sends each one back.
struct Conversation {
  fid_ep* endpoint = nullptr;
  bool asks = false;
  Plan plan;
  Clock::time_point begin = Clock::now();
  bool connected = false, lost = false, over = false;
  bool sending = false, receiving = false;
  std::uint32_t sent = 0, received = 0;
  std::vector<std::uint8_t> out, in;

  bool is_complete() const { return received == plan.messages && sent == plan.messages; }
};

fi_info* info_for(const char* address, const char* port) {
  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_MSG;
  hints->caps = FI_MSG;
  hints->addr_format = FI_SOCKADDR_IN;
  hints->fabric_attr->prov_name = ::strdup("weft");
  fi_info* info = nullptr;
  check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), address, port, FI_SOURCE, hints, &info));
  fi_freeinfo(hints);
  return info;
}

sockaddr_in address_of(const std::string& address, in_port_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) fail("inet_pton", -FI_EINVAL);
  return name;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Fabric, domain, and the queues of all endpoints.
struct Objects {
  Objects(const char* address, const char* port) : info(info_for(address, port)) {
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
    fi_eq_attr eq_attr{};
    check("fi_eq_open", fi_eq_open(fabric, &eq_attr, &events, nullptr));
    check("fi_domain", fi_domain(fabric, info, &domain, nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_MSG;
    cq_attr.size = 8192;
    check("fi_cq_open", fi_cq_open(domain, &cq_attr, &completions, nullptr));
  }
  ~Objects() {
    for (fid* each : {&completions->fid, &domain->fid, &events->fid, &fabric->fid}) fi_close(each);
    fi_freeinfo(info);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  // An endpoint that may connect or accept, or an error.
  int open(fi_info* info_or_request, fid_ep*& endpoint) const {
    int status = fi_endpoint(domain, info_or_request, &endpoint, nullptr);
    if (status != 0) return status;
    status = fi_ep_bind(endpoint, &events->fid, 0);
    if (status == 0) status = fi_ep_bind(endpoint, &completions->fid, FI_SEND | FI_RECV);
    if (status == 0) status = fi_enable(endpoint);
    if (status != 0) check("fi_close", fi_close(&endpoint->fid));
    return status;
  }

  fi_info* info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_eq* events = nullptr;
  fid_cq* completions = nullptr;
};

class ConnectingPeer {
 public:
  ConnectingPeer(const char* address, const char* port) : objects_(address, port) {}
  ~ConnectingPeer() {
    while (!conversations_.empty()) close(conversations_.begin()->first);
    if (listener_ != nullptr) fi_close(&listener_->fid);
  }
  ConnectingPeer(const ConnectingPeer&) = delete;
  ConnectingPeer& operator=(const ConnectingPeer&) = delete;

  in_port_t listen() {
    check("fi_passive_ep", fi_passive_ep(objects_.fabric, objects_.info, &listener_, nullptr));
    check("fi_pep_bind", fi_pep_bind(listener_, &objects_.events->fid, 0));
    check("fi_listen", fi_listen(listener_));
    sockaddr_in name{};
    std::size_t length = sizeof name;
    check("fi_getname", fi_getname(&listener_->fid, &name, &length));
    return ntohs(name.sin_port);
  }

  void command(const std::string& line) {
    std::istringstream words(line);
    std::string name, address;
    in_port_t port = 0;
    std::uint64_t seed = 0;
    words >> name >> address >> port >> seed;
    if (name == "cycle") {
      cycling_ = true;
      talked_ = false;
      random_.seed(seed);
      peer_ = address_of(address, port);
      ask_for(draw_plan(random_));
    } else if (name == "stream") {
      peer_ = address_of(address, port);
      ask_for({std::numeric_limits<std::uint32_t>::max(), 1024, Ending::kRequesterCloses});
    } else if (name == "rest") {
      rests_ = true;
    } else if (name == "hold" || name == "go") {
      holds_ = name == "hold";
      for (const auto& [number, each] : conversations_) due_.insert(number);
    } else if (name == "ask") {
      report();
    } else {
      fail(name.c_str(), -FI_EINVAL);
    }
  }

  // True when there was something to do.
  bool step() {
    bool busy = read_events();
    busy |= read_completions();
    for (const std::uint64_t number : std::exchange(due_, {})) {
      if (conversations_.contains(number)) advance(number);
    }
    return busy;
  }

 private:
  void report() {
    std::string line;
    for (const std::size_t each :
         {counts_.requests, counts_.accepted, counts_.connected, conversations_.size(),
          counts_.ended, counts_.failed, counts_.aborted, counts_.messages, counts_.broken}) {
      line += (line.empty() ? "" : " ") + std::to_string(each);
    }
    say(line);
  }

  void begin(fid_ep* endpoint, bool asks, const Plan& plan) {
    Conversation& made = conversations_[++last_];
    made.endpoint = endpoint;
    made.asks = asks;
    made.plan = plan;
    made.out.resize(plan.bytes);
    made.in.resize(plan.bytes);
    numbers_[&endpoint->fid] = last_;
  }

  void ask_for(const Plan& plan) {
    fid_ep* endpoint = nullptr;
    check("opening an endpoint", objects_.open(objects_.info, endpoint));
    begin(endpoint, true, plan);
    check("fi_connect", fi_connect(endpoint, &peer_, &plan, sizeof plan));
  }

  void requested(fi_info* request, const Plan& plan) {
    ++counts_.requests;
    fid_ep* endpoint = nullptr;
    if (plan.ending == Ending::kRejected || objects_.open(request, endpoint) != 0) {
      static_cast<void>(fi_reject(listener_, request->handle, "no", 2));  // it may have ended
    } else {
      begin(endpoint, false, plan);
      if (fi_accept(endpoint, nullptr, 0) == 0) {
        ++counts_.accepted;
      } else {
        close(last_);  // it has ended
      }
    }
    fi_freeinfo(request);
  }

  bool read_events() {
    alignas(fi_eq_cm_entry) std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + kMostData> room{};
    std::uint32_t event = 0;
    const ssize_t got = fi_eq_read(objects_.events, &event, room.data(), room.size(), 0);
    if (got == -FI_EAGAIN) return false;
    if (got == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      check("fi_eq_readerr", fi_eq_readerr(objects_.events, &error, 0));
      ++counts_.failed;
      if (error.err == FI_ECONNABORTED) ++counts_.aborted;
      ended(error.fid, error.err);
      return true;
    }
    check("fi_eq_read", got);
    fi_eq_cm_entry entry{};
    std::memcpy(&entry, room.data(), sizeof entry);
    if (event == FI_CONNREQ) {
      Plan plan;
      if (static_cast<std::size_t>(got) == sizeof entry + sizeof plan)
        std::memcpy(&plan, room.data() + sizeof entry, sizeof plan);
      requested(entry.info, plan);
    } else if (event == FI_CONNECTED) {
      ++counts_.connected;
      const std::uint64_t number = number_of(entry.fid);
      conversations_.at(number).connected = true;
      due_.insert(number);
    } else if (event == FI_SHUTDOWN) {
      ++counts_.ended;
      ended(entry.fid, 0);
    }
    return true;
  }

  // An event of an endpoint that is not open ends the process.
  std::uint64_t number_of(const fid* endpoint) const {
    const auto found = numbers_.find(endpoint);
    if (found == numbers_.end()) fail("an event of a closed endpoint", -FI_EOTHER);
    return found->second;
  }

  bool read_completions() {
    fi_cq_msg_entry entry{};
    const ssize_t got = fi_cq_read(objects_.completions, &entry, 1);
    if (got == -FI_EAGAIN) return false;
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      check("fi_cq_readerr", fi_cq_readerr(objects_.completions, &error, 0));
      const auto failed = conversations_.find(reinterpret_cast<std::uintptr_t>(error.op_context));
      if (failed != conversations_.end()) failed->second.lost = true;
      return true;
    }
    check("fi_cq_read", got);
    const auto found = conversations_.find(reinterpret_cast<std::uintptr_t>(entry.op_context));
    if (found != conversations_.end()) {
      completed(found->second, (entry.flags & FI_RECV) != 0);
      due_.insert(found->first);
    }
    return true;
  }

  void completed(Conversation& of, bool receive) {
    if (!receive) {
      of.sending = false;
      return;
    }
    of.receiving = false;
    const auto number = static_cast<std::uint8_t>(of.received++);
    const bool whole =
        std::all_of(of.in.begin(), of.in.end(), [&](std::uint8_t byte) { return byte == number; });
    ++(whole ? counts_.messages : counts_.broken);
  }

  // Posts what is due on a connection, and ends it when its plan says so.
  void advance(std::uint64_t number) {
    Conversation& of = conversations_.at(number);
    if (!of.connected || of.lost || of.over) return;
    void* const context = reinterpret_cast<void*>(number);
    if (!of.receiving && of.received < of.plan.messages) {
      of.receiving =
          posted(number, fi_recv(of.endpoint, of.in.data(), of.in.size(), nullptr, 0, context));
    }
    const bool due = of.asks ? of.sent == of.received && !holds_ : of.sent < of.received;
    if (due && !of.sending && of.sent < of.plan.messages) {
      std::fill(of.out.begin(), of.out.end(), static_cast<std::uint8_t>(of.sent));
      of.sending =
          posted(number, fi_send(of.endpoint, of.out.data(), of.out.size(), nullptr, 0, context));
      if (of.sending) ++of.sent;
    }
    if (of.is_complete() && !of.sending) finish(number);
  }

  // An endpoint whose connection has ended takes nothing; its event is still to be read.
  bool posted(std::uint64_t number, ssize_t status) {
    if (status == -FI_EAGAIN) due_.insert(number);
    conversations_.at(number).lost = status != 0 && status != -FI_EAGAIN;
    return status == 0;
  }

  void finish(std::uint64_t number) {
    Conversation& of = conversations_.at(number);
    of.over = true;
    const Ending ending = of.plan.ending;
    if (ending == (of.asks ? Ending::kRequesterShutsDown : Ending::kAcceptorShutsDown)) {
      check("fi_shutdown", fi_shutdown(of.endpoint, 0));
    } else if (ending == (of.asks ? Ending::kRequesterCloses : Ending::kAcceptorCloses)) {
      const bool asked = of.asks;
      close(number);
      if (asked) next();
    }
  }

  // An attempt has failed or a connection has ended: error 0 is FI_SHUTDOWN.
  void ended(const fid* endpoint, int error) {
    while (read_completions()) {  // what was received before the end
    }
    const std::uint64_t number = number_of(endpoint);
    const Conversation& of = conversations_.at(number);
    const bool rejected = of.plan.ending == Ending::kRejected;
    const bool planned = rejected ? error == FI_ECONNREFUSED : error == 0 && of.is_complete();
    const bool asked = of.asks;
    const auto lived =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - of.begin);
    close(number);
    if (!asked) return;
    if (planned) return next();
    cycling_ = false;
    say("ended " + std::to_string(lived.count()) + " " +
        (error == 0 ? "FI_SHUTDOWN" : fi_strerror(error)));
  }

  // A connection has ended as it should.
  void next() {
    if (!talked_) say("talks");
    talked_ = true;
    if (rests_) say("rests");
    cycling_ &= !rests_;
    rests_ = false;
    if (cycling_) ask_for(draw_plan(random_));
  }

  void close(std::uint64_t number) {
    fid_ep* const endpoint = conversations_.at(number).endpoint;
    numbers_.erase(&endpoint->fid);
    check("fi_close", fi_close(&endpoint->fid));
    conversations_.erase(number);
  }

  Objects objects_;
  fid_pep* listener_ = nullptr;
  std::map<std::uint64_t, Conversation> conversations_;    // by number, the context of operations
  std::unordered_map<const fid*, std::uint64_t> numbers_;  // of endpoints
  // Numbers of conversations that may post something: a step costs the same with 1,000 others.
  std::set<std::uint64_t> due_;
  std::uint64_t last_ = 0;
  sockaddr_in peer_{};
  std::mt19937_64 random_;
  bool cycling_ = false, talked_ = false, rests_ = false, holds_ = false;
  Counts counts_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  ConnectingPeer peer(words[1], words[2]);
  say("at " + std::to_string(count > 3 ? peer.listen() : 0));
  Commands commands;
  while (commands.read(peer)) {
    if (!peer.step()) ::usleep(kRestMicroseconds);
  }
}
