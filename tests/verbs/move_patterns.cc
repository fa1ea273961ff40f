// SPDX-License-Identifier: BSD-2-Clause
// Do the bytes of every operation arrive, over each transport, whatever their number and places?
//
// usage: weft_move_patterns TRANSPORT [HOST]     (rc, uc, ud or xrc; with HOST as client)
//
// perftest checks no byte; this program checks all. The client moves patterns to the server, and
// reads them back, by each operation, with sizes from 0 to 1 MiB (UC: 64 KiB), inline and in
// several scatter-gather entries. WEFT_TEST_GID: index of the GID. WEFT_TEST_PORT: TCP port of the
// server. WEFT_TEST_TIMEOUT: the queue pair's timeout, as in ibv_modify_qp(3). WEFT_TEST_ROUNDS:
// how often the list of operations is gone through.
#include <infiniband/verbs.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "exchange.h"

namespace {

constexpr int kPort = 18'515;
constexpr int kTimeout = 18;
constexpr std::size_t kRoom = std::size_t{2} << 20;
constexpr std::size_t kLargest = std::size_t{1} << 20;
constexpr std::size_t kGrh = 40;
// The socket of the receiver holds that much. More could be lost, which is no fault of a transport
// that does not repeat.
constexpr std::size_t kLargestUnreliable = 65'537;
constexpr std::chrono::seconds kArrives(20);  // only a fault takes that long
constexpr std::uint32_t kQueueKey = 0x1111'1111;
constexpr std::size_t kSizes[] = {0,    1,      7,      8,      63,      64,        65,
                                  255,  1023,   1024,   1025,   4095,    4096,      4097,
                                  8192, 65'535, 65'536, 65'537, 262'144, 1'000'003, kLargest};

int variable(const char* name, int standard) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : standard;
}

struct Place {
  std::uint32_t qpn;
  std::uint32_t send_qpn;  // of an XRC initiator
  std::uint32_t srq;
  std::uint32_t key;
  std::uint64_t address;
  ibv_gid gid;
};

// One process: its verbs objects and memory.
class Side {
 public:
  Side(const std::string& transport, Exchange& exchange) : exchange_(exchange) {
    type_ = transport == "rc"   ? IBV_QPT_RC
            : transport == "uc" ? IBV_QPT_UC
            : transport == "ud" ? IBV_QPT_UD
                                : IBV_QPT_XRC_SEND;
    open();
    create();
    connect();
  }
  ~Side() {
    if (receiver_ != sender_) check(ibv_destroy_qp(receiver_), "ibv_destroy_qp");
    check(ibv_destroy_qp(sender_), "ibv_destroy_qp");
    if (srq_ != nullptr) check(ibv_destroy_srq(srq_), "ibv_destroy_srq");
    if (xrcd_ != nullptr) check(ibv_close_xrcd(xrcd_), "ibv_close_xrcd");
    if (ah_ != nullptr) check(ibv_destroy_ah(ah_), "ibv_destroy_ah");
    check(ibv_destroy_cq(cq_), "ibv_destroy_cq");
    check(ibv_dereg_mr(mr_), "ibv_dereg_mr");
    check(ibv_dealloc_pd(pd_), "ibv_dealloc_pd");
    check(ibv_close_device(context_), "ibv_close_device");
  }

  static void check(int error, const char* what) {
    if (error != 0) fail(std::string(what) + ": error " + std::to_string(error));
  }
  bool is_datagram() const { return type_ == IBV_QPT_UD; }
  bool is_reliable() const { return type_ == IBV_QPT_RC || type_ == IBV_QPT_XRC_SEND; }
  std::byte* memory() { return memory_.data(); }

  // Entries that cover [at, at + length), cut in `pieces`.
  std::vector<ibv_sge> cut(std::size_t at, std::size_t length, std::size_t pieces) const {
    std::vector<ibv_sge> list;
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t part = i + 1 == pieces ? length : length / 3;
      list.push_back({reinterpret_cast<std::uint64_t>(memory_.data()) + at,
                      static_cast<std::uint32_t>(part), mr_->lkey});
      at += part;
      length -= part;
    }
    return list;
  }
  void post_receive(std::vector<ibv_sge> list) {
    ibv_recv_wr request{};
    request.wr_id = 2;
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    check(srq_ != nullptr ? ibv_post_srq_recv(srq_, &request, &bad)
                          : ibv_post_recv(receiver_, &request, &bad),
          "ibv_post_recv");
  }
  void post(ibv_wr_opcode opcode, std::vector<ibv_sge> list, bool copied, std::size_t remote_at) {
    ibv_send_wr request{};
    request.wr_id = 1;
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(list.size());
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    if (copied) request.send_flags |= IBV_SEND_INLINE;
    request.imm_data = 0x0403'0201;
    if (is_datagram()) {
      request.wr.ud = {ah_, peer_.qpn, kQueueKey};
    } else if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
      request.wr.atomic = {peer_.address + remote_at, 41, 43, peer_.key};
    } else {
      request.wr.rdma = {peer_.address + remote_at, peer_.key};
    }
    request.qp_type.xrc.remote_srqn = peer_.srq;
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(sender_, &request, &bad), "ibv_post_send");
  }
  ibv_wc next(const char* what) {
    ibv_wc wc{};
    int found = 0;
    while (found == 0) found = ibv_poll_cq(cq_, 1, &wc);
    if (found < 0) fail("ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS) {
      errno = 0;
      fail(std::string(what) + ": " + ibv_wc_status_str(wc.status) + ", vendor_err " +
           std::to_string(wc.vendor_err));
    }
    return wc;
  }
  // Lets the device work while no completion is due.
  void look() {
    ibv_wc wc{};
    if (ibv_poll_cq(cq_, 1, &wc) != 0) fail("a completion that nothing asked for");
  }

 private:
  void open() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    if (list == nullptr || count == 0) fail("no device");
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (context_ == nullptr) fail("ibv_open_device");
    gid_ = variable("WEFT_TEST_GID", 0);
    ibv_port_attr port{};
    check(ibv_query_port(context_, 1, &port), "ibv_query_port");
    mtu_ = port.active_mtu;
  }
  void create() {
    pd_ = ibv_alloc_pd(context_);
    if (pd_ == nullptr) fail("ibv_alloc_pd");
    mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC);
    if (mr_ == nullptr) fail("ibv_reg_mr");
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    if (cq_ == nullptr) fail("ibv_create_cq");
    if (type_ == IBV_QPT_XRC_SEND) create_xrc_target();
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.cap = {16, 16, 4, 4, 64};
    wanted.qp_type = type_;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = pd_;
    sender_ = ibv_create_qp_ex(context_, &wanted);
    if (sender_ == nullptr) fail("ibv_create_qp_ex");
    if (receiver_ == nullptr) receiver_ = sender_;
  }
  void create_xrc_target() {
    ibv_xrcd_init_attr domain{};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    xrcd_ = ibv_open_xrcd(context_, &domain);
    if (xrcd_ == nullptr) fail("ibv_open_xrcd");
    ibv_srq_init_attr_ex queue{};
    queue.attr = {16, 4, 0};
    queue.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                      IBV_SRQ_INIT_ATTR_PD;
    queue.srq_type = IBV_SRQT_XRC;
    queue.pd = pd_;
    queue.xrcd = xrcd_;
    queue.cq = cq_;
    srq_ = ibv_create_srq_ex(context_, &queue);
    if (srq_ == nullptr) fail("ibv_create_srq_ex");
    ibv_qp_init_attr_ex target{};
    target.qp_type = IBV_QPT_XRC_RECV;
    target.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    target.xrcd = xrcd_;
    receiver_ = ibv_create_qp_ex(context_, &target);
    if (receiver_ == nullptr) fail("ibv_create_qp_ex of an XRC target");
  }
  void connect() {
    Place mine{};
    mine.qpn = receiver_->qp_num;
    mine.send_qpn = sender_->qp_num;
    if (srq_ != nullptr) check(ibv_get_srq_num(srq_, &mine.srq), "ibv_get_srq_num");
    mine.key = mr_->rkey;
    mine.address = reinterpret_cast<std::uint64_t>(memory_.data());
    check(ibv_query_gid(context_, 1, gid_, &mine.gid), "ibv_query_gid");
    peer_ = exchange_.swap(mine);
    ready(sender_, peer_.qpn);
    if (receiver_ != sender_) ready(receiver_, peer_.send_qpn);
    if (is_datagram()) {
      ibv_ah_attr address = to_peer();
      ah_ = ibv_create_ah(pd_, &address);
      if (ah_ == nullptr) fail("ibv_create_ah");
    }
    exchange_.meet();
  }
  ibv_ah_attr to_peer() const {
    ibv_ah_attr address{};
    address.is_global = 1;
    address.grh.dgid = peer_.gid;
    address.grh.sgid_index = static_cast<std::uint8_t>(gid_);
    address.grh.hop_limit = 64;
    address.port_num = 1;
    return address;
  }
  void ready(ibv_qp* qp, std::uint32_t to) {
    const bool connected = !is_datagram();
    const bool target = is_reliable() && qp->qp_type != IBV_QPT_XRC_SEND;
    const bool initiator = is_reliable() && qp->qp_type != IBV_QPT_XRC_RECV;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qkey = kQueueKey;
    attributes.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    check(ibv_modify_qp(qp, &attributes,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)),
          "to INIT");
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = mtu_;
    attributes.dest_qp_num = to;
    attributes.rq_psn = 1;
    attributes.ah_attr = to_peer();
    attributes.max_dest_rd_atomic = 16;
    attributes.min_rnr_timer = 1;
    int mask = IBV_QP_STATE;
    if (connected) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (target) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    check(ibv_modify_qp(qp, &attributes, mask), "to RTR");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = 1;
    attributes.timeout = static_cast<std::uint8_t>(variable("WEFT_TEST_TIMEOUT", kTimeout));
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 16;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (initiator) {
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (is_reliable() && !initiator) mask |= IBV_QP_TIMEOUT;
    check(ibv_modify_qp(qp, &attributes, mask), "to RTS");
  }

  Exchange& exchange_;
  ibv_qp_type type_ = IBV_QPT_RC;
  int gid_ = 0;
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kRoom);
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_xrcd* xrcd_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp* sender_ = nullptr;
  ibv_qp* receiver_ = nullptr;
  ibv_ah* ah_ = nullptr;
  Place peer_{};
};

// One operation of the client and what the server does for it. Both run through the same list.
struct Move {
  ibv_wr_opcode opcode;
  std::size_t size;
  std::size_t pieces;
  bool copied;
  std::size_t number;
};

std::byte pattern(const Move& move, std::size_t i) {
  return static_cast<std::byte>(move.number * 31 + i * 7 + (i >> 8) * 13 + 1);
}

std::vector<Move> moves_of(const Side& side) {
  std::vector<ibv_wr_opcode> opcodes = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
  if (!side.is_datagram()) {
    opcodes.push_back(IBV_WR_RDMA_WRITE);
    opcodes.push_back(IBV_WR_RDMA_WRITE_WITH_IMM);
  }
  if (side.is_reliable()) opcodes.push_back(IBV_WR_RDMA_READ);
  std::vector<Move> all;
  for (const ibv_wr_opcode opcode : opcodes) {
    for (const std::size_t size : kSizes) {
      if (side.is_datagram() && size > 1024) continue;
      if (!side.is_reliable() && size > kLargestUnreliable) continue;
      for (const std::size_t pieces : {1, 3})
        all.push_back({opcode, size, pieces, false, all.size()});
      if (size <= 64 && opcode != IBV_WR_RDMA_READ) {
        all.push_back({opcode, size, 1, true, all.size()});
      }
    }
  }
  if (side.is_reliable()) {
    all.push_back({IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1, false, all.size()});
    all.push_back({IBV_WR_ATOMIC_CMP_AND_SWP, 8, 1, false, all.size()});
  }
  return all;
}

bool takes_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

std::size_t expect(const Move& move, const std::byte* bytes) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < move.size; ++i) wrong += bytes[i] == pattern(move, i) ? 0 : 1;
  if (wrong != 0) {
    std::fprintf(stderr, "move %zu (opcode %d, %zu bytes, %zu pieces%s): %zu bytes are wrong\n",
                 move.number, move.opcode, move.size, move.pieces, move.copied ? ", inline" : "",
                 wrong);
  }
  return wrong;
}

// A write without a receive completes at the client of an unreliable connection when it has left.
void await(Side& side, const Move& move) {
  const std::byte* const memory = side.memory();
  const auto end = std::chrono::steady_clock::now() + kArrives;
  const auto arrived = [&] {
    for (std::size_t i = 0; i < move.size; ++i) {
      if (memory[i] != pattern(move, i)) return false;
    }
    return true;
  };
  while (!arrived() && std::chrono::steady_clock::now() < end) side.look();
}

// The server's memory is as the client's operation needs it, then as the operation has left it.
std::size_t serve(Side& side, Exchange& exchange, const Move& move) {
  std::byte* const memory = side.memory();
  std::fill_n(memory, kRoom, std::byte{0xEE});
  const std::size_t header = side.is_datagram() ? kGrh : 0;
  if (takes_receive(move.opcode)) {
    side.post_receive(side.cut(0, move.size + header, move.pieces == 1 ? 1 : 2));
  }
  if (move.opcode == IBV_WR_RDMA_READ) {
    for (std::size_t i = 0; i < move.size; ++i) memory[i] = pattern(move, i);
  }
  const std::uint64_t value = 41;
  if (move.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) std::memcpy(memory, &value, sizeof value);
  exchange.meet();
  std::size_t wrong = 0;
  if (takes_receive(move.opcode)) {
    const ibv_wc wc = side.next("receive");
    const bool immediate = move.opcode != IBV_WR_SEND;
    wrong += wc.byte_len == move.size + header ? 0 : 1;
    wrong +=
        !immediate || ((wc.wc_flags & IBV_WC_WITH_IMM) != 0 && wc.imm_data == 0x0403'0201) ? 0 : 1;
  }
  if (move.opcode == IBV_WR_RDMA_WRITE && !side.is_reliable()) await(side, move);
  exchange.meet();
  if (move.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
    std::uint64_t now = 0;
    std::memcpy(&now, memory, sizeof now);
    return wrong + (now == (move.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? 43 : 82) ? 0 : 1);
  }
  wrong += expect(move, memory + header);
  for (std::size_t i = header + move.size; i < kRoom; ++i)
    wrong += memory[i] == std::byte{0xEE} ? 0 : 1;
  return wrong;
}

std::size_t drive(Side& side, Exchange& exchange, const Move& move) {
  std::byte* const memory = side.memory();
  const bool reads = move.opcode == IBV_WR_RDMA_READ || move.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
  for (std::size_t i = 0; i < move.size; ++i) memory[i] = reads ? std::byte{0} : pattern(move, i);
  exchange.meet();
  side.post(move.opcode, side.cut(0, move.size, move.pieces), move.copied, 0);
  if (move.copied) std::fill_n(memory, move.size, std::byte{0x55});
  side.next("send");
  exchange.meet();
  if (move.opcode == IBV_WR_RDMA_READ) return expect(move, memory);
  if (!reads) return 0;
  std::uint64_t before = 0;
  std::memcpy(&before, memory, sizeof before);
  return before == 41 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s rc|uc|ud|xrc [HOST]\n", words[0]);
    return 2;
  }
  const bool client = count > 2;
  const auto port = static_cast<unsigned short>(variable("WEFT_TEST_PORT", kPort));
  const int rounds = variable("WEFT_TEST_ROUNDS", 1);
  Exchange exchange = client ? Exchange::reach(words[2], port) : Exchange::serve(port);
  std::size_t wrong = 0;
  std::size_t moves = 0;
  {
    Side side(words[1], exchange);
    for (int round = 0; round < rounds; ++round) {
      for (const Move& move : moves_of(side)) {
        wrong += client ? drive(side, exchange, move) : serve(side, exchange, move);
        ++moves;
      }
    }
    exchange.meet();
  }
  std::printf("%s %s: %zu operations, %zu faults\n", words[1], client ? "client" : "server", moves,
              wrong);
  return wrong == 0 ? 0 : 1;
}
