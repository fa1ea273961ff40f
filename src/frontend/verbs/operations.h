// SPDX-License-Identifier: BSD-2-Clause
// Which functions does a program call through the tables of its context?
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi.h"

namespace weft::verbs {

// Sets the operations of a context. One that is null is refused by the inline function of the
// header.
void fill_operations(verbs_context& verbs);
// The same for experimental verbs (verbs_exp.h).
void fill_operations(verbs_context_exp& verbs);

// query_device.cc
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

// query_port.cc
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes,
               std::size_t size);

// mr.cc
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int dealloc_mw(ibv_mw* mw);

// exp_reg_mr.cc
ibv_mr* exp_reg_mr(ibv_exp_reg_mr_in* in);

// exp_reg_shared_mr.cc
ibv_mr* exp_reg_shared_mr(ibv_exp_reg_shared_mr_in* in);

// exp_memory.cc
int query_mr_memory(ibv_mr* mr, weft_exp_mr_memory* memory);

// exp_query_device.cc
int exp_query_device(ibv_context* context, ibv_exp_device_attr* attributes);

// prefetch.cc
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count);

// cq.cc
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted);
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);

// qp.cc
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* wanted);
int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);

// srq.cc
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad);

// xrcd.cc
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* wanted);
int close_xrcd(ibv_xrcd* xrcd);

}  // namespace weft::verbs
