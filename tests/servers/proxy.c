/* Passes bytes between clients and a server in a thread of its own, and cuts where it is told. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS 64
#define CHUNK 65536

enum {
	CLIENT,
	SERVER
};

typedef struct pair {
	int fd[2];
	int spoke;       /* who did last; -1: nobody */
	bool chosen;     /* the cut is for this one */
	uint64_t passed; /* bytes of what is to be cut */
} pair;

struct proxy {
	pthread_t thread;
	int listener;
	uint16_t port;
	uint16_t server_port;
	pair links[LINKS];
	size_t count;
	pthread_mutex_t lock; /* of what follows */
	int cut;              /* PROXY_REPLY, PROXY_REQUEST, or -1 */
	uint64_t cut_after;
	unsigned skip; /* requests before the one that is meant */
	void (*then)(void *ctx);
	void *ctx;
	_Atomic uint64_t spoken[2];
	atomic_bool stop;
};

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static void close_link(proxy *p, size_t i)
{
	close(p->links[i].fd[CLIENT]);
	close(p->links[i].fd[SERVER]);
	p->links[i] = p->links[--p->count];
}

static void accept_link(proxy *p)
{
	int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(p->server_port);
	if (client < 0 || server < 0 || p->count == LINKS ||
	    connect(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(client);
		close(server);
		return;
	}
	int one = 1;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->links[p->count++] = (pair){{client, server}, -1, false, 0};
}

/* How many of these bytes may pass: all, or fewer, after which the link is cut. */
static size_t allowed(proxy *p, pair *l, int from, size_t n)
{
	size_t pass = n;
	void (*then)(void *ctx) = NULL;
	pthread_mutex_lock(&p->lock);
	if (p->cut >= 0 && from == CLIENT && !l->chosen && p->skip > 0) {
		p->skip--;
	} else if (p->cut >= 0 && from == CLIENT && !l->chosen) {
		l->chosen = true;
		l->passed = 0;
	}
	if (p->cut < 0)
		l->chosen = false;
	if (l->chosen && from == (p->cut == PROXY_REPLY ? SERVER : CLIENT)) {
		if (l->passed + n > p->cut_after) {
			pass = (size_t)(p->cut_after - l->passed);
			p->cut = -1;
			then = p->then;
		}
		l->passed += pass;
	}
	pthread_mutex_unlock(&p->lock);
	if (then)
		then(p->ctx);
	return pass;
}

/* Passes on what one side says. False when the link is to be closed. */
static bool forward(proxy *p, pair *l, int from)
{
	char chunk[CHUNK];
	ssize_t n = read(l->fd[from], chunk, sizeof(chunk));
	if (n <= 0)
		return false;
	if (l->spoke != from)
		atomic_fetch_add(&p->spoken[from], 1);
	l->spoke = from;
	size_t pass = allowed(p, l, from, (size_t)n);
	for (size_t done = 0; done < pass;) {
		ssize_t sent = send(l->fd[!from], chunk + done, pass - done, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		done += (size_t)sent;
	}
	return pass == (size_t)n;
}

static void *run(void *argument)
{
	proxy *p = argument;
	while (!atomic_load(&p->stop)) {
		struct pollfd polled[2 * LINKS + 1];
		for (size_t i = 0; i < p->count; i++)
			for (int side = 0; side < 2; side++)
				polled[2 * i + (size_t)side] = (struct pollfd){p->links[i].fd[side],
				                                               POLLIN, 0};
		polled[2 * p->count] = (struct pollfd){p->listener, POLLIN, 0};
		if (poll(polled, 2 * p->count + 1, 50) <= 0)
			continue;
		bool arrival = polled[2 * p->count].revents != 0;
		for (size_t i = p->count; i-- > 0;)
			for (int side = 0; side < 2; side++)
				if (polled[2 * i + (size_t)side].revents &&
				    !forward(p, &p->links[i], side)) {
					close_link(p, i);
					break;
				}
		if (arrival)
			accept_link(p);
	}
	while (p->count > 0)
		close_link(p, 0);
	return NULL;
}

proxy *proxy_start(uint16_t server_port)
{
	proxy *p = calloc(1, sizeof(*p));
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	if (!p)
		return NULL;
	p->cut = -1;
	p->server_port = server_port;
	pthread_mutex_init(&p->lock, NULL);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(p->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(p->listener, LINKS) != 0 ||
	    getsockname(p->listener, (struct sockaddr *)&address, &size) != 0 ||
	    pthread_create(&p->thread, NULL, run, p) != 0) {
		close(p->listener);
		free(p);
		return NULL;
	}
	p->port = ntohs(address.sin_port);
	return p;
}

void proxy_stop(proxy *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->thread, NULL);
	close(p->listener);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint16_t proxy_port(const proxy *p)
{
	return p->port;
}

static void set_cut(proxy *p, int what, uint64_t bytes, unsigned skip, void (*then)(void *ctx),
                    void *ctx)
{
	pthread_mutex_lock(&p->lock);
	p->cut = what;
	p->cut_after = bytes;
	p->skip = skip;
	p->then = then;
	p->ctx = ctx;
	pthread_mutex_unlock(&p->lock);
}

void proxy_cut(proxy *p, int what, uint64_t bytes)
{
	set_cut(p, what, bytes, 0, NULL, NULL);
}

void proxy_cut_later(proxy *p, int what, unsigned skip, void (*then)(void *ctx), void *ctx)
{
	set_cut(p, what, 0, skip, then, ctx);
}

bool proxy_cut_done(proxy *p)
{
	pthread_mutex_lock(&p->lock);
	bool done = p->cut < 0;
	p->cut = -1;
	pthread_mutex_unlock(&p->lock);
	return done;
}

uint64_t proxy_requests(const proxy *p)
{
	return atomic_load(&p->spoken[CLIENT]);
}

uint64_t proxy_replies(const proxy *p)
{
	return atomic_load(&p->spoken[SERVER]);
}
