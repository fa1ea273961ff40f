// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: ibv_create_qp(3), ibv_modify_qp(3), ibv_query_qp(3)
#include "qp.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "boundary.h"
#include "cq.h"
#include "objects.h"
#include "operations.h"
#include "settings.h"
#include "work_builder.h"
#include "xrcd.h"

namespace weft::verbs {
namespace {

static_assert(static_cast<int>(queue::QpState::kReset) == IBV_QPS_RESET);
static_assert(static_cast<int>(queue::QpState::kInit) == IBV_QPS_INIT);
static_assert(static_cast<int>(queue::QpState::kReadyToReceive) == IBV_QPS_RTR);
static_assert(static_cast<int>(queue::QpState::kReadyToSend) == IBV_QPS_RTS);
static_assert(static_cast<int>(queue::QpState::kSendQueueDrained) == IBV_QPS_SQD);
static_assert(static_cast<int>(queue::QpState::kSendQueueError) == IBV_QPS_SQE);
static_assert(static_cast<int>(queue::QpState::kError) == IBV_QPS_ERR);
static_assert(int{queue::kAttributeState} == int{IBV_QP_STATE});
static_assert(int{queue::kAttributeCurrentState} == int{IBV_QP_CUR_STATE});
static_assert(int{queue::kAttributeDrainedNotice} == int{IBV_QP_EN_SQD_ASYNC_NOTIFY});
static_assert(int{queue::kAttributeAccess} == int{IBV_QP_ACCESS_FLAGS});
static_assert(int{queue::kAttributePkeyIndex} == int{IBV_QP_PKEY_INDEX});
static_assert(int{queue::kAttributePort} == int{IBV_QP_PORT});
static_assert(int{queue::kAttributeQueueKey} == int{IBV_QP_QKEY});
static_assert(int{queue::kAttributeAddress} == int{IBV_QP_AV});
static_assert(int{queue::kAttributePathMtu} == int{IBV_QP_PATH_MTU});
static_assert(int{queue::kAttributeTimeout} == int{IBV_QP_TIMEOUT});
static_assert(int{queue::kAttributeRetries} == int{IBV_QP_RETRY_CNT});
static_assert(int{queue::kAttributeRnrRetries} == int{IBV_QP_RNR_RETRY});
static_assert(int{queue::kAttributeReceivePsn} == int{IBV_QP_RQ_PSN});
static_assert(int{queue::kAttributeMaxReads} == int{IBV_QP_MAX_QP_RD_ATOMIC});
static_assert(int{queue::kAttributeAlternatePath} == int{IBV_QP_ALT_PATH});
static_assert(int{queue::kAttributeRnrTimer} == int{IBV_QP_MIN_RNR_TIMER});
static_assert(int{queue::kAttributeSendPsn} == int{IBV_QP_SQ_PSN});
static_assert(int{queue::kAttributeMaxReadsOfPeer} == int{IBV_QP_MAX_DEST_RD_ATOMIC});
static_assert(int{queue::kAttributePathMigration} == int{IBV_QP_PATH_MIG_STATE});
static_assert(int{queue::kAttributeCapacities} == int{IBV_QP_CAP});
static_assert(int{queue::kAttributeDestination} == int{IBV_QP_DEST_QPN});
static_assert(int{queue::kAttributeRateLimit} == int{IBV_QP_RATE_LIMIT});

constexpr unsigned kRemoteRights =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
// May be set, and mean nothing for a queue pair.
constexpr unsigned kOtherRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
                                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
                                  IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;

std::optional<queue::QpType> type_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return queue::QpType::kRc;
    case IBV_QPT_UC:
      return queue::QpType::kUc;
    case IBV_QPT_UD:
      return queue::QpType::kUd;
    case IBV_QPT_XRC_SEND:
      return queue::QpType::kXrcSend;
    case IBV_QPT_XRC_RECV:
      return queue::QpType::kXrcReceive;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
      break;
  }
  return std::nullopt;
}

Access rights_of(unsigned flags) {
  Access rights = Access::kNone;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) rights = rights | Access::kRemoteRead;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) rights = rights | Access::kRemoteWrite;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0) rights = rights | Access::kRemoteAtomic;
  return rights;
}

unsigned flags_of(Access rights) {
  unsigned flags = 0;
  if (includes(rights, Access::kRemoteRead)) flags |= IBV_ACCESS_REMOTE_READ;
  if (includes(rights, Access::kRemoteWrite)) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (includes(rights, Access::kRemoteAtomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

std::size_t bytes_of(unsigned code) {
  return code >= IBV_MTU_256 && code <= IBV_MTU_4096 ? std::size_t{128} << code : 0;
}

int check_queues(ibv_context* context, const ibv_qp_init_attr_ex& wanted, queue::QpType type) {
  const bool sends = type != queue::QpType::kXrcReceive;
  const bool receives = sends && type != queue::QpType::kXrcSend;
  if (sends && wanted.send_cq == nullptr) return EINVAL;
  if (receives && wanted.recv_cq == nullptr) return EINVAL;
  const bool has_xrcd = (wanted.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && wanted.xrcd != nullptr;
  const bool has_pd = (wanted.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && wanted.pd != nullptr;
  if (sends ? !has_pd : !has_xrcd) return EINVAL;
  const auto is_foreign = [&](const auto* object) { return object->context != context; };
  if (!sends) return is_foreign(wanted.xrcd) ? EINVAL : 0;
  const bool foreign = is_foreign(wanted.pd) || is_foreign(wanted.send_cq) ||
                       (receives && is_foreign(wanted.recv_cq)) ||
                       (receives && wanted.srq != nullptr && is_foreign(wanted.srq));
  return foreign ? EINVAL : check_handle(object_of(wanted.pd));
}

void bind_queues(VerbsQp& pair, const ibv_qp_init_attr_ex& wanted, queue::QpType type) {
  const bool sends = type != queue::QpType::kXrcReceive;
  const bool receives = sends && type != queue::QpType::kXrcSend;
  if (sends) {
    pair.sends = UseOf<VerbsCq>(object_of(wanted.send_cq));
    pair.domain = UseOf<VerbsPd>(object_of(wanted.pd));
  } else {
    pair.xrc_domain = UseOf<VerbsXrcd>(object_of(wanted.xrcd));
  }
  if (receives) pair.receives = UseOf<VerbsCq>(object_of(wanted.recv_cq));
  if (receives && wanted.srq != nullptr) {
    pair.shared = UseOf<VerbsSrq>(object_of(wanted.srq));
  }
}

// The queues whose polls drive the port of this queue pair.
template <class Visit>
void each_queue(const VerbsQp& pair, const Visit& visit) {
  if (pair.sends) visit(*pair.sends.get());
  if (pair.receives) visit(*pair.receives.get());
}

// The queue pair of a target lives as long as that.
std::shared_ptr<queue::QueuePair> core_of(const std::shared_ptr<XrcTarget>& target) {
  return {target, target->core.get()};
}

// All of them, or none.
Status drive_queues(VerbsQp& pair) {
  std::vector<VerbsCq*> driven;
  Status status;
  each_queue(pair, [&](VerbsCq& queue) {
    if (status) status = drive(queue, *pair.port);
    if (status) driven.push_back(&queue);
  });
  if (status) return status;
  for (VerbsCq* const queue : driven) stop_driving(*queue, *pair.port);
  return status;
}

// The queue pair behind the handle.
Status make_core(VerbsQp& pair, queue::QpSetup& setup) {
  setup.events = &pair;
  if (pair.xrc_domain) {
    pair.target = std::make_shared<XrcTarget>(pair.xrc_domain.get()->domain, pair.port);
    setup.events = pair.target.get();
  }
  auto core = queue::QueuePair::create(setup);
  if (!core) return core.error();
  if (pair.target == nullptr) {
    pair.core = std::move(core).value();
    return {};
  }
  pair.target->core = std::move(core).value();
  pair.core = core_of(pair.target);
  pair.target->domain->add(pair.target);
  return {};
}

// Fills in the structure that programs read, except its queues. The handle gets events from now on.
void show(VerbsQp& pair, ibv_context* context, void* qp_context, ibv_qp_type type) {
  ibv_qp& shown = pair.plain();
  show_identity(shown, pair.identity, context);
  shown.qp_context = qp_context;
  shown.qp_num = pair.core->qpn();
  shown.qp_type = type;
  pthread_mutex_init(&shown.mutex, nullptr);
  pthread_cond_init(&shown.cond, nullptr);
  if (pair.target != nullptr) pair.target->add(pair);
}

ibv_qp_cap capacities_of(const queue::QpCapacities& granted) {
  return {granted.sends, granted.receives, granted.send_sges, granted.receive_sges,
          granted.inline_bytes};
}

ibv_qp* create(ibv_context* context, ibv_qp_init_attr_ex& wanted, std::uint64_t operations) {
  const auto type = type_of(wanted.qp_type);
  if (!type) return null_with(wanted.qp_type == IBV_QPT_RAW_PACKET ? EOPNOTSUPP : EINVAL);
  if (const int error = check_queues(context, wanted, *type); error != 0) return null_with(error);
  if (!has_operations(*type, operations)) return null_with(EOPNOTSUPP);
  auto pair = std::make_unique<VerbsQp>();
  bind_queues(*pair, wanted, *type);
  if (pair->shared && pair->shared.get()->xrc_domain) return null_with(EINVAL);
  VerbsContext& device = VerbsContext::of(context);
  if (pair->receives) {
    pair->port = pair->receives.get()->port;
  } else if (pair->sends) {
    pair->port = pair->sends.get()->port;
  } else {
    auto first = device.ports().first();
    if (!first) return null_with(errno_of(first.error()));
    pair->port = std::move(first).value();
  }
  queue::QpSetup setup;
  setup.device = device.shared_core();
  setup.port = pair->port;
  setup.type = *type;
  if (pair->domain) setup.domain = pair->domain.get()->domain;
  if (pair->sends) setup.sends = pair->sends.get()->entries.get();
  if (pair->receives) setup.receives = pair->receives.get()->entries.get();
  if (pair->shared) setup.shared = pair->shared.get()->receives.get();
  if (pair->xrc_domain) setup.shared_by_number = pair->xrc_domain.get()->domain.get();
  setup.capacities = {wanted.cap.max_send_wr, wanted.cap.max_recv_wr, wanted.cap.max_send_sge,
                      wanted.cap.max_recv_sge, wanted.cap.max_inline_data};
  setup.all_signaled = pair->all_signaled = wanted.sq_sig_all != 0;
  setup.selective = settings().options.selective;
  setup.refusals = &refusal_log();
  if (Status made = make_core(*pair, setup); !made) return null_with(errno_of(made.error()));
  if (Status driven = drive_queues(*pair); !driven) return null_with(errno_of(driven.error()));
  fill_work_functions(*pair, operations);
  show(*pair, context, wanted.qp_context, wanted.qp_type);
  pair->plain().pd = pair->domain ? wanted.pd : nullptr;
  pair->plain().send_cq = wanted.send_cq;
  pair->plain().recv_cq = wanted.recv_cq;
  pair->plain().srq = wanted.srq;
  pair->plain().state = IBV_QPS_RESET;
  wanted.cap = capacities_of(pair->core->capacities());
  return &pair.release()->plain();
}

int destroy(ibv_qp* qp) {
  if (qp == nullptr) return EINVAL;
  VerbsQp& pair = object_of(qp);
  if (const int error = check_handle(pair); error != 0) return error;
  if (pair.target != nullptr && !VerbsContext::of(qp->context).inherited()) {
    pair.target->remove(pair);
  }
  pair.core.reset();
  pair.target.reset();
  for (device::EventSource& source : pair.sources) {
    VerbsContext::of(qp->context).events().forget(source);
  }
  each_queue(pair, [&](VerbsCq& queue) { stop_driving(queue, *pair.port); });
  await_acknowledgements(*qp, pair.events.delivered, qp->events_completed);
  pthread_cond_destroy(&qp->cond);
  pthread_mutex_destroy(&qp->mutex);
  delete &pair;
  return 0;
}

// Linux ignores the attributes of the other end of an extended connection (modify_qp_mask() of
// uverbs_cmd.c), and perftest sets them.
std::uint32_t mask_of(ibv_qp_type type, int wanted) {
  constexpr std::uint32_t kOfTarget = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr std::uint32_t kOfInitiator =
      IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  const auto mask = static_cast<std::uint32_t>(wanted);
  if (type == IBV_QPT_XRC_SEND) return mask & ~kOfTarget;
  if (type == IBV_QPT_XRC_RECV) return mask & ~kOfInitiator;
  return mask;
}

int modify(ibv_qp* qp, const ibv_qp_attr& wanted, int wanted_mask) {
  VerbsQp& pair = object_of(qp);
  if (const int error = check_handle(pair); error != 0) return error;
  const std::uint32_t mask = mask_of(qp->qp_type, wanted_mask);
  const auto has = [mask](std::uint32_t one) { return (mask & one) != 0; };
  if (has(IBV_QP_ACCESS_FLAGS) && (wanted.qp_access_flags & ~(kRemoteRights | kOtherRights)) != 0) {
    return EINVAL;
  }
  queue::QpAttributes attributes;
  const unsigned state = number_in(wanted.qp_state);
  const unsigned current = number_in(wanted.cur_qp_state);
  if ((has(IBV_QP_STATE) && state > IBV_QPS_ERR) ||
      (has(IBV_QP_CUR_STATE) && current > IBV_QPS_ERR)) {
    return EINVAL;
  }
  attributes.state = static_cast<queue::QpState>(state);
  attributes.current_state = static_cast<queue::QpState>(current);
  attributes.access = rights_of(wanted.qp_access_flags);
  attributes.pkey_index = wanted.pkey_index;
  attributes.port = wanted.port_num;
  attributes.queue_key = wanted.qkey;
  if (has(IBV_QP_AV)) {
    auto address = address_of(qp->context, wanted.ah_attr);
    if (!address) return errno_of(address.error());
    attributes.address = address.value();
  }
  attributes.path_mtu = bytes_of(number_in(wanted.path_mtu));
  attributes.destination = wanted.dest_qp_num & 0xFF'FFFF;
  attributes.receive_psn = Psn(wanted.rq_psn);
  attributes.send_psn = Psn(wanted.sq_psn);
  attributes.max_reads = wanted.max_rd_atomic;
  attributes.max_reads_of_peer = wanted.max_dest_rd_atomic;
  attributes.rnr_timer = wanted.min_rnr_timer;
  attributes.timeout = wanted.timeout;
  attributes.retries = wanted.retry_cnt;
  attributes.rnr_retries = wanted.rnr_retry;
  const Status done =
      pair.core->modify(attributes, mask, most_path_mtu(VerbsContext::of(qp->context).device()));
  qp->state = static_cast<ibv_qp_state>(pair.core->state());
  return done ? 0 : errno_of(done.error());
}

int query(ibv_qp* qp, ibv_qp_attr& found, ibv_qp_init_attr* initial) {
  VerbsQp& pair = object_of(qp);
  if (const int error = check_handle(pair); error != 0) return error;
  const queue::QpAttributes attributes = pair.core->query();
  found = {};
  found.qp_state = found.cur_qp_state = static_cast<ibv_qp_state>(attributes.state);
  qp->state = found.qp_state;
  found.path_mtu = mtu_of(attributes.path_mtu);
  found.path_mig_state = IBV_MIG_MIGRATED;
  found.qkey = attributes.queue_key;
  found.rq_psn = attributes.receive_psn.value();
  found.sq_psn = attributes.send_psn.value();
  found.dest_qp_num = attributes.destination;
  found.qp_access_flags = flags_of(attributes.access);
  found.cap = capacities_of(pair.core->capacities());
  write_address(attributes.address, found.ah_attr);
  found.pkey_index = attributes.pkey_index;
  found.max_rd_atomic = attributes.max_reads;
  found.max_dest_rd_atomic = attributes.max_reads_of_peer;
  found.min_rnr_timer = attributes.rnr_timer;
  found.port_num = attributes.port;
  found.timeout = attributes.timeout;
  found.retry_cnt = attributes.retries;
  found.rnr_retry = attributes.rnr_retries;
  if (initial == nullptr) return 0;
  *initial = {};
  initial->qp_context = qp->qp_context;
  initial->send_cq = qp->send_cq;
  initial->recv_cq = qp->recv_cq;
  initial->srq = qp->srq;
  initial->cap = found.cap;
  initial->qp_type = qp->qp_type;
  initial->sq_sig_all = pair.all_signaled ? 1 : 0;
  return 0;
}

ibv_qp* create_plain(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  if (pd == nullptr || wanted == nullptr) return null_with(EINVAL);
  if (number_in(wanted->qp_type) > IBV_QPT_DRIVER) return null_with(EINVAL);
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = wanted->qp_context;
  extended.send_cq = wanted->send_cq;
  extended.recv_cq = wanted->recv_cq;
  extended.srq = wanted->srq;
  extended.cap = wanted->cap;
  extended.qp_type = wanted->qp_type;
  extended.sq_sig_all = wanted->sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* const made = create(pd->context, extended, 0);
  if (made != nullptr) wanted->cap = extended.cap;
  return made;
}

}  // namespace

void VerbsQp::happened(queue::QpEvent event) {
  device::EventSource& source = sources[static_cast<std::size_t>(event)];
  VerbsContext::of(plain().context).events().raise(source, this);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted) {
  constexpr std::uint32_t kMasks = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                   IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  return at_c_border<ibv_qp>([&]() -> ibv_qp* {
    const bool has_flags = (wanted->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0;
    if ((wanted->comp_mask & ~kMasks) != 0 || (has_flags && wanted->create_flags != 0)) {
      return null_with(EOPNOTSUPP);
    }
    const bool builds = (wanted->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    return create(context, *wanted, builds ? wanted->send_ops_flags : 0);
  });
}

// Another handle of an XRC target, whose state it does not say until it is asked, as on hardware.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* wanted) {
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  return at_c_border<ibv_qp>([&]() -> ibv_qp* {
    const std::uint32_t mask = wanted->comp_mask;
    if ((mask & ~(kNeeded | IBV_QP_OPEN_ATTR_CONTEXT)) != 0) return null_with(EOPNOTSUPP);
    if ((mask & kNeeded) != kNeeded || wanted->xrcd == nullptr ||
        wanted->xrcd->context != context || wanted->qp_type != IBV_QPT_XRC_RECV) {
      return null_with(EINVAL);
    }
    auto pair = std::make_unique<VerbsQp>();
    pair->target = object_of(wanted->xrcd).domain->target(wanted->qp_num);
    if (pair->target == nullptr) return null_with(EINVAL);
    pair->xrc_domain = UseOf<VerbsXrcd>(object_of(wanted->xrcd));
    pair->core = core_of(pair->target);
    const bool named = (mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0;
    show(*pair, context, named ? wanted->qp_context : nullptr, IBV_QPT_XRC_RECV);
    pair->plain().state = IBV_QPS_UNKNOWN;
    return &pair.release()->plain();
  });
}

}  // namespace weft::verbs

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
  using namespace weft::verbs;
  return at_c_border<ibv_qp>([&] { return create_plain(pd, wanted); });
}
int ibv_destroy_qp(ibv_qp* qp) { return weft::verbs::destroy(qp); }
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* wanted, int mask) {
  using namespace weft::verbs;
  return status_at_c_border([&] { return modify(qp, *wanted, mask); });
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* found, int /*mask*/, ibv_qp_init_attr* initial) {
  using namespace weft::verbs;
  return status_at_c_border([&] { return query(qp, *found, initial); });
}
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  weft::verbs::VerbsQp& pair = weft::verbs::object_of(qp);
  return pair.builder != nullptr ? &pair : nullptr;
}

// No order of the bytes of a message is promised.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

// Enhanced connection establishment is for devices of a vendor.
int ibv_set_ece(ibv_qp*, ibv_ece*) { return weft::verbs::status_with(EOPNOTSUPP); }

int ibv_query_ece(ibv_qp*, ibv_ece*) { return weft::verbs::status_with(EOPNOTSUPP); }

}  // extern "C"
