/*
 * A TCP proxy in front of one server that counts what passes and can cut a
 * connection in the middle of a reply or a request.
 */
#ifndef SERVERS_PROXY_H
#define SERVERS_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct proxy proxy;

enum {
	PROXY_REPLY,
	PROXY_REQUEST
};

/* Listens on loopback in front of a port of it; NULL if that cannot be. */
proxy *proxy_start(uint16_t server_port);
void proxy_stop(proxy *p);
uint16_t proxy_port(const proxy *p);

/*
 * Cuts one connection, once: of the next request, or of the reply to it, `bytes` bytes pass, then
 * both ends are closed. A reply is cut only once the server has sent more of it than that, so the
 * request has been carried out.
 */
void proxy_cut(proxy *p, int what, uint64_t bytes);
/* The same of the request after `skip` others, and before the client sees it `then` is called. */
void proxy_cut_later(proxy *p, int what, unsigned skip, void (*then)(void *ctx), void *ctx);
/* Takes back a cut that has not come to pass. Whether it had. */
bool proxy_cut_done(proxy *p);

/* How often a client spoke after its server, or first; how often a server spoke after its client. */
uint64_t proxy_requests(const proxy *p);
uint64_t proxy_replies(const proxy *p);

#endif
