// SPDX-License-Identifier: BSD-2-Clause
// Is a shared region one memory, by whatever process's key peers access it?
//
// usage: weft_shared_access hold PORT [ID]
//        weft_shared_access keep PORT [ID]
//        weft_shared_access drive NUMBER HOST PORT...
//        weft_shared_access fail NUMBER HOST PORT...
//
// A holder (hold, keep) creates the region, or attaches to that with the id, prints the id, and
// serves both initiators at PORT and PORT + 1. With `hold` it prints the two words at the end that
// they count in; with `keep` the memory may be gone by then.
//
// An initiator, of number 0 or 1, knows the ports of holders. With `drive` it writes, sends and
// adds through each holder's key, reads all of it back through every other one's, and then counts
// with the other initiator, in one word by FETCH_ADD and in another one by CMP_SWAP, through all
// keys at once; it prints its counts. With `fail` it writes (0) or reads (1) in vain, and prints
// with which status.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../exchange.h"

namespace {

constexpr std::size_t kPart = 4096;                      // of one initiator through one holder
constexpr std::size_t kMessages = std::size_t{1} << 18;  // where the parts of messages begin
constexpr std::size_t kBytes = std::size_t{1} << 21;
constexpr std::size_t kAdded = kBytes - 128;   // the word for FETCH_ADD
constexpr std::size_t kSwapped = kBytes - 64;  // for CMP_SWAP
constexpr std::size_t kRounds = 300;
constexpr unsigned kInitiators = 2;
constexpr std::uint64_t kAccess = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE |
                                  IBV_EXP_ACCESS_REMOTE_READ | IBV_EXP_ACCESS_REMOTE_ATOMIC;

void check(int error, const char* what) {
  if (error != 0) fail(std::string(what) + ": error " + std::to_string(error));
}

template <class Object>
Object* made(Object* object, const char* what) {
  if (object == nullptr) fail(what);
  return object;
}

// An open device of this process, which is never closed.
struct Device {
  Device() {
    ibv_device** const list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
    context = made(ibv_open_device(list[0]), "ibv_open_device");
    ibv_free_device_list(list);
    pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
    ibv_port_attr port{};
    check(ibv_query_port(context, 1, &port), "ibv_query_port");
    mtu = port.active_mtu;
  }
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mtu mtu = IBV_MTU_1024;
};

// Everything that the other side needs to know.
struct Place {
  std::uint32_t qpn;
  std::uint32_t key;
  std::uint64_t address;
  ibv_gid gid;
};

// One end of a connection.
class End {
 public:
  End(const Device& device, Exchange exchange, ibv_mr* memory)
      : device_(device), exchange_(std::move(exchange)), memory_(memory) {
    cq_ = made(ibv_create_cq(device.context, 64, nullptr, nullptr, 0), "ibv_create_cq");
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.cap = {16, 16, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    qp_ = made(ibv_create_qp(device.pd, &wanted), "ibv_create_qp");
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = kAccess;
    check(ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "to INIT");
  }
  Exchange& exchange() { return exchange_; }

  void post_receive(std::size_t at, std::size_t length) {
    ibv_sge entry = local(at, length);
    ibv_recv_wr request{};
    request.sg_list = &entry;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(qp_, &request, &bad), "ibv_post_recv");
  }
  void connect() {
    Place mine{qp_->qp_num, memory_->rkey, reinterpret_cast<std::uint64_t>(memory_->addr), {}};
    check(ibv_query_gid(device_.context, 1, 0, &mine.gid), "ibv_query_gid");
    peer_ = exchange_.swap(mine);
    make_ready();
    exchange_.meet();
  }
  // An operation on the peer's memory, with the same bytes of this process's own.
  void run(ibv_wr_opcode opcode, std::size_t at, std::size_t length, std::uint64_t compare = 0,
           std::uint64_t swap_or_add = 0) {
    start(opcode, at, at, length, compare, swap_or_add);
    finish();
  }
  void start(ibv_wr_opcode opcode, std::size_t own, std::size_t at, std::size_t length,
             std::uint64_t compare, std::uint64_t swap_or_add) {
    ibv_sge entry = local(own, length);
    ibv_send_wr request{};
    request.sg_list = &entry;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
      request.wr.atomic = {peer_.address + at,
                           opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? compare : swap_or_add, swap_or_add,
                           peer_.key};
    } else {
      request.wr.rdma = {peer_.address + at, peer_.key};
    }
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(qp_, &request, &bad), "ibv_post_send");
  }
  void finish() {
    const ibv_wc_status status = end();
    if (status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(status));
  }
  ibv_wc_status end() {
    ibv_wc wc{};
    while (ibv_poll_cq(cq_, 1, &wc) == 0) {
    }
    return wc.status;
  }

 private:
  ibv_sge local(std::size_t at, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory_->addr) + at, static_cast<std::uint32_t>(length),
            memory_->lkey};
  }
  void make_ready() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = device_.mtu;
    attributes.dest_qp_num = peer_.qpn;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = peer_.gid;
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.port_num = 1;
    attributes.max_dest_rd_atomic = 16;
    attributes.min_rnr_timer = 1;
    check(ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "to RTR");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 18;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 16;
    check(ibv_modify_qp(qp_, &attributes,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
          "to RTS");
  }

  const Device& device_;
  Exchange exchange_;
  ibv_mr* const memory_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  Place peer_{};
};

unsigned short port_of(const char* text) { return static_cast<unsigned short>(std::atoi(text)); }

std::size_t place_of(unsigned initiator, std::size_t holder) {
  return (initiator * 8 + holder) * kPart;
}

std::uint64_t word_in(const ibv_mr* region, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, static_cast<const std::byte*>(region->addr) + at, sizeof word);
  return word;
}

ibv_mr* create(const Device& device) {
  ibv_exp_reg_mr_in in{};
  in.pd = device.pd;
  in.length = kBytes;
  in.exp_access = kAccess | IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_SHARED_MR_USER_READ |
                  IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
  return made(ibv_exp_reg_mr(&in), "ibv_exp_reg_mr");
}

ibv_mr* attach(const Device& device, std::uint32_t id) {
  ibv_exp_reg_shared_mr_in in{};
  in.mr_handle = id;
  in.pd = device.pd;
  in.exp_access = kAccess;
  return made(ibv_exp_reg_shared_mr(&in), "ibv_exp_reg_shared_mr");
}

// The receive for an initiator's message is posted before it is connected; `number` is that of this
// holder among the initiator's ports.
int hold(unsigned short port, const char* id, bool counts) {
  const Device device;
  ibv_mr* const region =
      id == nullptr ? create(device)
                    : attach(device, static_cast<std::uint32_t>(std::strtoul(id, nullptr, 16)));
  std::printf("%08x\n", region->handle);
  std::fflush(stdout);
  std::deque<End> ends;
  for (unsigned i = 0; i < kInitiators; ++i) {
    ends.emplace_back(device, Exchange::serve(static_cast<unsigned short>(port + i)), region);
    const auto number = ends.back().exchange().swap(std::uint64_t{0});
    ends.back().post_receive(kMessages + place_of(i, number), kPart);
    ends.back().connect();
  }
  for (int meeting = 0; meeting < 2; ++meeting) {  // all are connected; all are done
    for (End& end : ends) end.exchange().meet();
  }
  if (counts) std::printf("%lu %lu\n", word_in(region, kAdded), word_in(region, kSwapped));
  return 0;
}

class Initiator {
 public:
  Initiator(unsigned number, const std::string& host, const std::vector<unsigned short>& ports)
      : number_(number) {
    own_ = made(ibv_reg_mr(device_.pd, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE),
                "ibv_reg_mr");
    for (std::uint64_t i = 0; i < ports.size(); ++i) {
      ends_.emplace_back(
          device_, Exchange::reach(host, static_cast<unsigned short>(ports[i] + number)), own_);
      ends_.back().exchange().swap(i);
      ends_.back().connect();
    }
    meet();
  }
  void meet() {
    for (End& end : ends_) end.exchange().meet();
  }
  // How many parts differ, as some holder's key shows them.
  std::size_t exchange_bytes() {
    std::size_t wrong = 0;
    for (std::size_t through = 0; through < ends_.size(); ++through) {
      const std::size_t at = place_of(number_, through);
      fill(at, through);
      fill(kMessages + at, through + ends_.size());
      ends_[through].run(IBV_WR_RDMA_WRITE, at, kPart);
      ends_[through].start(IBV_WR_SEND, kMessages + at, 0, kPart, 0, 0);
      ends_[through].finish();
      ends_[through].run(IBV_WR_ATOMIC_FETCH_AND_ADD, at, 8, 0, 1);
      for (End& other : ends_) wrong += look(other, at, through);
    }
    return wrong;
  }
  void fail_once() {
    ends_.front().start(number_ == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 0, kPart, 0, 0);
    std::printf("%s\n", ibv_wc_status_str(ends_.front().end()));
  }
  std::uint64_t add() {
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < ends_.size(); ++i)
        ends_[i].start(IBV_WR_ATOMIC_FETCH_AND_ADD, i * 8, kAdded, 8, 0, 1);
      for (End& end : ends_) end.finish();
    }
    return kRounds * ends_.size();
  }
  // Through all holders at a time, with the word's value as each has seen it last.
  std::uint64_t swap() {
    std::vector<std::uint64_t> seen(ends_.size());
    std::uint64_t swapped = 0;
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < ends_.size(); ++i)
        ends_[i].start(IBV_WR_ATOMIC_CMP_AND_SWP, i * 8, kSwapped, 8, seen[i], seen[i] + 1);
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        ends_[i].finish();
        const std::uint64_t found = word_in(own_, i * 8);
        swapped += found == seen[i] ? 1 : 0;
        seen[i] = found == seen[i] ? found + 1 : found;
      }
    }
    return swapped;
  }

 private:
  static std::byte pattern(std::size_t seed, std::size_t i) {
    return static_cast<std::byte>(seed * 37 + i * 7 + (i >> 8) + 1);
  }
  void fill(std::size_t at, std::size_t seed) {
    for (std::size_t i = 0; i < kPart; ++i) memory_[at + i] = pattern(seed + number_ * 16, i);
  }
  // The written part, whose first word was added to, and the message, as `by` shows them.
  std::size_t look(End& by, std::size_t at, std::size_t through) {
    fill(at, through);
    std::uint64_t first = word_in(own_, at) + 1;
    std::memcpy(&memory_[at], &first, sizeof first);
    fill(kMessages + at, through + ends_.size());
    return differs(by, at) + differs(by, kMessages + at);
  }
  std::size_t differs(End& by, std::size_t part) {
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(part);
    const std::vector<std::byte> expected(begin, begin + kPart);
    std::fill_n(begin, kPart, std::byte{0});
    by.run(IBV_WR_RDMA_READ, part, kPart);
    return std::equal(expected.begin(), expected.end(), begin) ? 0 : 1;
  }

  const unsigned number_;
  Device device_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  ibv_mr* own_ = nullptr;
  std::deque<End> ends_;
};

int fail_once(unsigned number, const std::string& host, const std::vector<unsigned short>& ports) {
  Initiator initiator(number, host, ports);
  initiator.fail_once();
  initiator.meet();
  return 0;
}

int drive(unsigned number, const std::string& host, const std::vector<unsigned short>& ports) {
  Initiator initiator(number, host, ports);
  const std::size_t wrong = initiator.exchange_bytes();
  const std::uint64_t added = initiator.add();
  const std::uint64_t swapped = initiator.swap();
  initiator.meet();
  std::printf("%lu %lu\n", added, swapped);
  if (wrong != 0) std::fprintf(stderr, "%zu parts differ\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string role = count > 2 ? words[1] : "";
  if (role == "hold" || role == "keep")
    return hold(port_of(words[2]), count > 3 ? words[3] : nullptr, role == "hold");
  if ((role != "drive" && role != "fail") || count < 5) return 2;
  std::vector<unsigned short> ports;
  for (int i = 4; i < count; ++i) ports.push_back(port_of(words[i]));
  const auto act = role == "drive" ? drive : fail_once;
  return act(static_cast<unsigned>(std::atoi(words[2])), words[3], ports);
}
