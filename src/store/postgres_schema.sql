-- The schema of `postgres:` stores, the one home of their SQL. A name that begins with an at sign
-- is one of ours: it gets the prefix of the store and quotes. A line "-- version N" begins what
-- brings a schema from version N - 1 to N.
--
-- Every key begins with the owner ("app/user"), so that the tables can be distributed on it; there
-- are no foreign keys, sequences or triggers. Nothing is kept on a connection: each function sets
-- the tenant, and how durable it commits, for its own transaction.

-- version 1

CREATE TABLE @meta (
	key text COLLATE "C" PRIMARY KEY,
	value text NOT NULL
);

-- One row a session. `mark` is the checksum that ends the head: with revision and created it says
-- that the head is the very one that a writer has built on. The session expires at `expires` and is
-- over at `over`, microseconds of this server's clock as `stored` is. `recency` and `expires_on` are
-- days, so that an append within a day changes no index; half a page is left free, so that it also
-- finds room beside the row while somebody's snapshot keeps the versions before it.
CREATE TABLE @session (
	owner text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL,
	app text COLLATE "C" NOT NULL,
	revision bigint NOT NULL,
	base bigint NOT NULL,
	created bigint NOT NULL,
	mark bigint NOT NULL,
	modified bigint NOT NULL,
	stored bigint NOT NULL,
	expires bigint,
	over bigint,
	recency integer NOT NULL,
	expires_on integer,
	hidden boolean NOT NULL,
	head bytea NOT NULL,
	state bytea NOT NULL,
	PRIMARY KEY (owner, session)
) WITH (fillfactor = 50);
ALTER TABLE @session ALTER COLUMN head SET STORAGE EXTERNAL;
ALTER TABLE @session ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE INDEX @session_recent ON @session (owner, recency DESC);
CREATE INDEX @session_app ON @session (app, recency DESC);
CREATE INDEX @session_expiry ON @session (expires_on, owner, session)
	WHERE expires_on IS NOT NULL;

-- One row a record, the header among them (kind 63). `body` is a codec byte (0 plain, 1 zstd) and
-- the line with its line break.
CREATE TABLE @record (
	owner text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL,
	seq bigint NOT NULL,
	app text COLLATE "C" NOT NULL,
	id text COLLATE "C",
	parent bigint NOT NULL,
	kind integer NOT NULL,
	body bytea NOT NULL,
	PRIMARY KEY (owner, session, seq)
);
ALTER TABLE @record ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX @record_id ON @record (owner, session, id);

-- Which session reads which: a fork has a row for every link of its chain.
CREATE TABLE @link (
	owner text COLLATE "C" NOT NULL,
	source text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL,
	app text COLLATE "C" NOT NULL,
	base bigint NOT NULL,
	PRIMARY KEY (owner, source, session)
);
CREATE INDEX @link_session ON @link (owner, session);

-- A user's state, and an app's under the app as owner, with deleted keys and who set them last.
CREATE TABLE @state (
	owner text COLLATE "C" NOT NULL,
	key bytea NOT NULL,
	app text COLLATE "C" NOT NULL,
	value bytea,
	time bigint NOT NULL,
	id text COLLATE "C" NOT NULL,
	PRIMARY KEY (owner, key)
) WITH (fillfactor = 70);
ALTER TABLE @state ALTER COLUMN value SET STORAGE EXTERNAL;

-- `place` is the order in which items of a session came.
CREATE TABLE @queue (
	owner text COLLATE "C" NOT NULL,
	session text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	app text COLLATE "C" NOT NULL,
	priority integer NOT NULL,
	place bigint NOT NULL,
	claims integer NOT NULL,
	enqueued bigint NOT NULL,
	claimed_until bigint NOT NULL,
	token text COLLATE "C",
	content bytea NOT NULL,
	environment bytea,
	PRIMARY KEY (owner, session, id)
);

-- The virtual shards that live here: "normal", "readonly" while one is being moved, "moved".
CREATE TABLE @shard (
	shard integer PRIMARY KEY,
	state text NOT NULL
);

-- The last line of defence between apps: a query that has not said whose rows it means has none.
-- An encoded app is never "*", which stands for all of them.
ALTER TABLE @session ENABLE ROW LEVEL SECURITY;
ALTER TABLE @session FORCE ROW LEVEL SECURITY;
CREATE POLICY @tenant ON @session USING (app = current_setting('sheaf.app', true)
	OR current_setting('sheaf.app', true) = '*');
ALTER TABLE @record ENABLE ROW LEVEL SECURITY;
ALTER TABLE @record FORCE ROW LEVEL SECURITY;
CREATE POLICY @tenant ON @record USING (app = current_setting('sheaf.app', true)
	OR current_setting('sheaf.app', true) = '*');
ALTER TABLE @link ENABLE ROW LEVEL SECURITY;
ALTER TABLE @link FORCE ROW LEVEL SECURITY;
CREATE POLICY @tenant ON @link USING (app = current_setting('sheaf.app', true)
	OR current_setting('sheaf.app', true) = '*');
ALTER TABLE @state ENABLE ROW LEVEL SECURITY;
ALTER TABLE @state FORCE ROW LEVEL SECURITY;
CREATE POLICY @tenant ON @state USING (app = current_setting('sheaf.app', true)
	OR current_setting('sheaf.app', true) = '*');
ALTER TABLE @queue ENABLE ROW LEVEL SECURITY;
ALTER TABLE @queue FORCE ROW LEVEL SECURITY;
CREATE POLICY @tenant ON @queue USING (app = current_setting('sheaf.app', true)
	OR current_setting('sheaf.app', true) = '*');

CREATE FUNCTION @now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- SHF01: the virtual shard does not live here.
CREATE FUNCTION @at_home(p_shard integer, p_write boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @shard WHERE shard = p_shard
		AND (state = 'normal' OR (state = 'readonly' AND NOT p_write));
	IF NOT FOUND THEN
		RAISE EXCEPTION 'virtual shard % does not live here', p_shard USING ERRCODE = 'SHF01';
	END IF;
END $$;

-- What every function begins with: whose rows, and whether they are here. What has no level of its own
-- (all but append) is on disk when it is answered, also where the server would not wait for that.
CREATE FUNCTION @enter(p_app text, p_shard integer, p_write boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('sheaf.app', p_app, true);
	IF p_write AND current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'local', true);
	END IF;
	IF p_shard IS NOT NULL THEN
		PERFORM @at_home(p_shard, p_write);
	END IF;
END $$;

-- A write that changes nothing: its commit waits until the disk, or a standby, has all that came
-- before.
CREATE FUNCTION @touch(p_owner text, p_session text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE @session SET stored = stored WHERE owner = p_owner AND session = p_session;
END $$;

-- Whether these very records are stored from `p_first` on, and as safely as p_sync says.
CREATE FUNCTION @stored_before(p_owner text, p_session text, p_first bigint, p_bodies bytea[],
	p_sync text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM unnest(p_bodies) WITH ORDINALITY b (body, n)
	JOIN @record r ON r.owner = p_owner AND r.session = p_session
		AND r.seq = p_first + b.n - 1 AND r.body = b.body
	HAVING count(*) = cardinality(p_bodies);
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	IF p_sync = 'on' THEN
		PERFORM @touch(p_owner, p_session);
	END IF;
	RETURN true;
END $$;

CREATE FUNCTION @add_rows(p_owner text, p_app text, p_session text, p_first bigint,
	p_ids text[], p_parents bigint[], p_kinds integer[], p_bodies bytea[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO @record (owner, session, seq, app, id, parent, kind, body)
	SELECT p_owner, p_session, p_first + n - 1, p_app, r.id, r.parent, r.kind, r.body
	FROM unnest(p_ids, p_parents, p_kinds, p_bodies)
		WITH ORDINALITY r (id, parent, kind, body, n);
END $$;

CREATE FUNCTION @set_links(p_owner text, p_app text, p_session text, p_links text[],
	p_bases bigint[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM @link WHERE owner = p_owner AND session = p_session;
	INSERT INTO @link (owner, source, session, app, base)
	SELECT p_owner, l.source, p_session, p_app, l.base
	FROM unnest(p_links, p_bases) l (source, base);
END $$;

-- SHF02: the state would grow over `p_most` bytes. The lock makes writers of an owner come one
-- after the other, which keeps the sum right and the keys free of deadlocks.
CREATE FUNCTION @set_state(p_owner text, p_app text, p_keys bytea[], p_values bytea[],
	p_most bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtextextended('@state ' || p_owner, 0));
	DELETE FROM @state s USING unnest(p_keys, p_values) i (key, value)
	WHERE s.owner = p_owner AND s.key = i.key AND i.value IS NULL;
	INSERT INTO @state (owner, key, app, value, time, id)
	SELECT DISTINCT ON (i.key) p_owner, i.key, p_app, i.value, 0, ''
	FROM unnest(p_keys, p_values) WITH ORDINALITY i (key, value, n)
	WHERE i.value IS NOT NULL
	ORDER BY i.key, i.n DESC
	ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value;
	PERFORM 1 FROM @state WHERE owner = p_owner
	HAVING sum(octet_length(key) + octet_length(value)) > p_most;
	IF FOUND THEN
		RAISE EXCEPTION 'the state grows over its limit' USING ERRCODE = 'SHF02';
	END IF;
END $$;

-- The one way to write. Status: 0 stored, 1 some of p_lookup are there (o_seqs), 2 no such session,
-- 3 hidden, 4 the head is another (o_head), 5 the source of a fork is gone, 6 exists already,
-- 7 no synchronous standby, 8 expired. p_retry: the same rows may have been stored by a call whose answer was
-- lost; if they are, that is success.
CREATE FUNCTION @append(
	p_owner text, p_app text, p_session text, p_shard integer, p_sync text,
	p_create boolean, p_revive boolean, p_retry boolean,
	p_revision bigint, p_created bigint, p_mark bigint,
	p_lookup text[],
	p_first bigint, p_ids text[], p_parents bigint[], p_kinds integer[], p_bodies bytea[],
	p_next bigint, p_next_mark bigint, p_head bytea, p_modified bigint, p_ttl bigint,
	p_grace bigint, p_state bytea, p_source text, p_links text[], p_bases bigint[],
	p_keys bytea[], p_values bytea[], p_most bigint,
	OUT o_status integer, OUT o_head bytea, OUT o_seqs bigint[], OUT o_state bytea)
LANGUAGE plpgsql AS $$
DECLARE
	v_hidden boolean;
	v_expires bigint;
	v_over bigint;
	v_known bigint;
	v_now bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
	v_next_expires bigint := CASE WHEN p_ttl > 0 THEN v_now + p_ttl END;
BEGIN
	PERFORM set_config('sheaf.app', p_app, true),
		set_config('synchronous_commit', p_sync, true);
	IF p_shard IS NOT NULL THEN
		PERFORM @at_home(p_shard, true);
	END IF;
	IF p_sync = 'on' AND current_setting('synchronous_standby_names') = '' THEN
		o_status := 7;
		RETURN;
	END IF;
	IF p_retry AND @stored_before(p_owner, p_session, p_first, p_bodies, p_sync) THEN
		o_status := 0;
		RETURN;
	END IF;
	IF cardinality(p_lookup) > 0 THEN
		SELECT count(r.seq), array_agg(coalesce(r.seq, 0) ORDER BY l.n) INTO v_known, o_seqs
		FROM unnest(p_lookup) WITH ORDINALITY l (id, n)
		LEFT JOIN @record r ON r.owner = p_owner AND r.session = p_session AND r.id = l.id;
		IF v_known > 0 THEN
			SELECT s.hidden, s.expires, s.over INTO v_hidden, v_expires, v_over
			FROM @session s WHERE s.owner = p_owner AND s.session = p_session;
			o_status := CASE WHEN v_hidden IS NULL THEN NULL
				WHEN p_create THEN CASE WHEN v_hidden THEN NULL ELSE 1 END
				WHEN v_hidden OR v_over <= v_now THEN 3
				WHEN v_expires <= v_now AND NOT p_revive THEN 8
				WHEN p_retry AND @stored_before(p_owner, p_session, p_first, p_bodies,
					p_sync) THEN 0
				ELSE 1 END;
			IF o_status = 1 AND p_sync <> 'off' THEN
				PERFORM @touch(p_owner, p_session);
			END IF;
			IF o_status IS NOT NULL THEN
				RETURN;
			END IF;
		END IF;
	END IF;

	IF p_create THEN
		PERFORM 1 FROM @session s WHERE s.owner = p_owner AND s.session = p_session;
		IF FOUND THEN
			o_status := CASE WHEN p_retry AND @stored_before(p_owner, p_session, p_first,
				p_bodies, p_sync) THEN 0 ELSE 6 END;
			RETURN;
		END IF;
		IF p_source IS NOT NULL THEN
			PERFORM 1 FROM @session s WHERE s.owner = p_owner AND s.session = p_source
				AND NOT s.hidden FOR KEY SHARE;
			IF NOT FOUND THEN
				o_status := 5;
				RETURN;
			END IF;
		END IF;
		INSERT INTO @session (owner, session, app, revision, base, created, mark, modified,
			stored, expires, over, recency, expires_on, hidden, head, state)
		VALUES (p_owner, p_session, p_app, p_next, p_first, p_created, p_next_mark,
			p_modified, v_now, v_next_expires, v_next_expires + p_grace,
			p_modified / 86400000000, v_next_expires / 86400000000, false, p_head, p_state)
		ON CONFLICT DO NOTHING;
		IF NOT FOUND THEN
			o_status := CASE WHEN p_retry AND @stored_before(p_owner, p_session, p_first,
				p_bodies, p_sync) THEN 0 ELSE 6 END;
			RETURN;
		END IF;
		IF cardinality(p_links) > 0 THEN
			PERFORM @set_links(p_owner, p_app, p_session, p_links, p_bases);
		END IF;
	ELSE
		UPDATE @session s SET revision = p_next, mark = p_next_mark, head = p_head,
			modified = p_modified, stored = v_now, expires = v_next_expires,
			over = v_next_expires + p_grace, recency = p_modified / 86400000000,
			expires_on = v_next_expires / 86400000000, state = coalesce(p_state, s.state)
		WHERE s.owner = p_owner AND s.session = p_session AND s.revision = p_revision
			AND s.created = p_created AND s.mark = p_mark AND NOT s.hidden
			AND (s.expires IS NULL OR s.expires > v_now OR (p_revive AND s.over > v_now));
		IF NOT FOUND THEN
			SELECT s.head, s.state, s.hidden, s.expires, s.over
			INTO o_head, o_state, v_hidden, v_expires, v_over
			FROM @session s WHERE s.owner = p_owner AND s.session = p_session;
			o_status := CASE WHEN v_hidden IS NULL THEN 2
				WHEN p_retry AND @stored_before(p_owner, p_session, p_first, p_bodies,
					p_sync) THEN 0
				WHEN v_hidden OR v_over <= v_now THEN 3
				WHEN v_expires <= v_now AND NOT p_revive THEN 8
				ELSE 4 END;
			RETURN;
		END IF;
	END IF;

	IF cardinality(p_bodies) = 1 THEN
		INSERT INTO @record (owner, session, seq, app, id, parent, kind, body)
		VALUES (p_owner, p_session, p_first, p_app, p_ids[1], p_parents[1], p_kinds[1],
			p_bodies[1]);
	ELSE
		INSERT INTO @record (owner, session, seq, app, id, parent, kind, body)
		SELECT p_owner, p_session, p_first + n - 1, p_app, r.id, r.parent, r.kind, r.body
		FROM unnest(p_ids, p_parents, p_kinds, p_bodies)
			WITH ORDINALITY r (id, parent, kind, body, n);
	END IF;
	IF cardinality(p_keys) > 0 THEN
		PERFORM @set_state(p_owner, p_app, p_keys, p_values, p_most);
	END IF;
	o_status := 0;
END $$;

CREATE FUNCTION @get_head(p_owner text, p_app text, p_session text, p_shard integer)
RETURNS TABLE (o_head bytea, o_state bytea, o_stored bigint, o_now bigint, o_hidden boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT s.head, s.state, s.stored, @now(), s.hidden FROM @session s
	WHERE s.owner = p_owner AND s.session = p_session;
END $$;

-- What only reads is STABLE, so that all of it sees one snapshot.

-- The seq of an id; NULL if it is not there, no row if the session is not.
CREATE FUNCTION @find(p_owner text, p_app text, p_session text, p_shard integer, p_id text)
RETURNS TABLE (o_seq bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT (SELECT r.seq FROM @record r
		WHERE r.owner = p_owner AND r.session = p_session AND r.id = p_id)
	FROM @session s WHERE s.owner = p_owner AND s.session = p_session;
END $$;

-- A page of a scan. The first row is about the session: seq its revision, parent its base, id its
-- created. With p_head two more follow: seq when it was stored, parent the time now, id is NULL unless
-- it is hidden, body the head in the one and the state in the other. Then records of the wanted kinds: of the first p_span seqs
-- in [p_low, p_high], or the last ones, at most p_limit, and no more after p_bytes of them. A range
-- is always bounded by seq, never by a limit alone.
CREATE FUNCTION @scan(p_owner text, p_app text, p_session text, p_shard integer,
	p_low bigint, p_high bigint, p_span bigint, p_kinds bigint, p_backward boolean,
	p_limit integer, p_bytes bigint, p_head boolean)
RETURNS TABLE (o_seq bigint, o_parent bigint, o_kind integer, o_id text, o_body bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_revision bigint;
	v_base bigint;
	v_created bigint;
	v_low bigint;
	v_high bigint;
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	SELECT s.revision, s.base, s.created INTO v_revision, v_base, v_created
	FROM @session s WHERE s.owner = p_owner AND s.session = p_session;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT v_revision, v_base, 0, v_created::text, NULL::bytea;
	IF p_head THEN
		RETURN QUERY SELECT s.stored, @now(), n, CASE WHEN s.hidden THEN 'hidden' END,
			CASE n WHEN 1 THEN s.head ELSE s.state END
		FROM @session s, generate_series(1, 2) n
		WHERE s.owner = p_owner AND s.session = p_session;
	END IF;
	v_low := greatest(p_low, v_base + 1);
	v_high := least(p_high, v_revision);
	IF p_backward THEN
		v_low := greatest(v_low, v_high - p_span + 1);
		RETURN QUERY SELECT q.seq, q.parent, q.kind, q.id, q.body FROM (
			SELECT r.seq, r.parent, r.kind, r.id, r.body,
				sum(octet_length(r.body)) OVER w - octet_length(r.body) AS before
			FROM @record r
			WHERE r.owner = p_owner AND r.session = p_session
				AND r.seq BETWEEN v_low AND v_high AND (p_kinds >> r.kind) & 1 = 1
			WINDOW w AS (ORDER BY r.seq DESC ROWS UNBOUNDED PRECEDING)
			ORDER BY r.seq DESC LIMIT p_limit) q
		WHERE q.before < p_bytes;
	ELSE
		v_high := least(v_high, v_low + p_span - 1);
		RETURN QUERY SELECT q.seq, q.parent, q.kind, q.id, q.body FROM (
			SELECT r.seq, r.parent, r.kind, r.id, r.body,
				sum(octet_length(r.body)) OVER w - octet_length(r.body) AS before
			FROM @record r
			WHERE r.owner = p_owner AND r.session = p_session
				AND r.seq BETWEEN v_low AND v_high AND (p_kinds >> r.kind) & 1 = 1
			WINDOW w AS (ORDER BY r.seq ROWS UNBOUNDED PRECEDING)
			ORDER BY r.seq LIMIT p_limit) q
		WHERE q.before < p_bytes;
	END IF;
END $$;

CREATE FUNCTION @get_header(p_owner text, p_app text, p_session text, p_shard integer)
RETURNS TABLE (o_seq bigint, o_parent bigint, o_kind integer, o_id text, o_body bytea)
LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT r.seq, r.parent, r.kind, r.id, r.body
	FROM @session s JOIN @record r ON r.owner = s.owner AND r.session = s.session
		AND r.seq = s.base
	WHERE s.owner = p_owner AND s.session = p_session;
END $$;

-- Pages of lists, newest first, after (p_modified, p_after_owner, p_after_session): of an owner, of
-- an app, or (p_app "*") of everything.
-- A plan for owners in general would read and sort all sessions of one that has a million; planned
-- for the one it is about, it stops after the days that fill the page.
CREATE FUNCTION @list(p_owner text, p_app text, p_shard integer, p_hidden boolean,
	p_modified bigint, p_after_owner text, p_after_session text, p_least bigint,
	p_limit integer)
RETURNS TABLE (o_owner text, o_session text, o_app text, o_modified bigint, o_stored bigint,
	o_head bytea, o_now bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_now bigint := @now();
	v_day integer := p_modified / 86400000000;
	v_least integer := p_least / 86400000000;
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
	IF p_owner IS NOT NULL THEN
		RETURN QUERY SELECT s.owner, s.session, s.app, s.modified, s.stored, s.head, v_now
		FROM @session s
		WHERE s.owner = p_owner AND s.recency BETWEEN v_least AND v_day
			AND (s.modified < p_modified OR (s.modified = p_modified
				AND (s.owner, s.session) > (p_after_owner, p_after_session)))
			AND s.modified >= p_least AND (p_hidden OR NOT s.hidden)
		ORDER BY s.recency DESC, s.modified DESC, s.owner, s.session LIMIT p_limit;
	ELSIF p_app <> '*' THEN
		RETURN QUERY SELECT s.owner, s.session, s.app, s.modified, s.stored, s.head, v_now
		FROM @session s
		WHERE s.app = p_app AND s.recency BETWEEN v_least AND v_day
			AND (s.modified < p_modified OR (s.modified = p_modified
				AND (s.owner, s.session) > (p_after_owner, p_after_session)))
			AND s.modified >= p_least AND (p_hidden OR NOT s.hidden)
		ORDER BY s.recency DESC, s.modified DESC, s.owner, s.session LIMIT p_limit;
	ELSE
		RETURN QUERY SELECT s.owner, s.session, s.app, s.modified, s.stored, s.head, v_now
		FROM @session s
		WHERE s.recency BETWEEN v_least AND v_day
			AND (s.modified < p_modified OR (s.modified = p_modified
				AND (s.owner, s.session) > (p_after_owner, p_after_session)))
			AND s.modified >= p_least AND (p_hidden OR NOT s.hidden)
		ORDER BY s.recency DESC, s.modified DESC, s.owner, s.session LIMIT p_limit;
	END IF;
END $$;

-- A page of what has expired by p_by, along the index of days.
CREATE FUNCTION @list_expired(p_owner text, p_app text, p_shard integer, p_by bigint,
	p_after_day integer, p_after_owner text, p_after_session text, p_limit integer)
RETURNS TABLE (o_owner text, o_session text, o_app text, o_modified bigint, o_stored bigint,
	o_head bytea, o_now bigint, o_day integer)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_now bigint := @now();
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT s.owner, s.session, s.app, s.modified, s.stored, s.head, v_now,
		s.expires_on
	FROM @session s
	WHERE s.expires_on IS NOT NULL AND s.expires_on <= (p_by / 86400000000)::integer
		AND (s.expires_on, s.owner, s.session) > (p_after_day, p_after_owner, p_after_session)
		AND s.expires <= p_by AND NOT s.hidden
		AND (p_owner IS NULL OR s.owner = p_owner)
	ORDER BY s.expires_on, s.owner, s.session LIMIT p_limit;
END $$;

-- The living sessions that read one, in the order of lists.
CREATE FUNCTION @readers(p_owner text, p_app text, p_session text, p_shard integer)
RETURNS TABLE (o_owner text, o_session text, o_app text, o_modified bigint, o_stored bigint,
	o_head bytea, o_now bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v_now bigint := @now();
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT s.owner, s.session, s.app, s.modified, s.stored, s.head, v_now
	FROM @link l JOIN @session s ON s.owner = l.owner AND s.session = l.session
	WHERE l.owner = p_owner AND l.source = p_session AND NOT s.hidden
	ORDER BY s.modified DESC, s.owner, s.session;
END $$;

CREATE FUNCTION @erase(p_owner text, p_session text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM @record WHERE owner = p_owner AND session = p_session;
	DELETE FROM @link WHERE owner = p_owner AND session = p_session;
	DELETE FROM @queue WHERE owner = p_owner AND session = p_session;
	DELETE FROM @session WHERE owner = p_owner AND session = p_session;
END $$;

-- Removes a session that nobody reads. Status: 0 removed, 2 no such session, 3 hidden already and
-- nothing to give back, 4 it is read up to o_highest: see hide, 5 not hidden (p_reap), 6 hidden or
-- not over (p_expired). The lock keeps forks from being made
-- meanwhile.
CREATE FUNCTION @remove(p_owner text, p_app text, p_session text, p_shard integer, p_reap boolean,
	p_expired boolean, OUT o_status integer, OUT o_hidden boolean, OUT o_highest bigint, OUT o_head bytea)
LANGUAGE plpgsql AS $$
DECLARE
	v_revision bigint;
	v_over bigint;
BEGIN
	PERFORM @enter(p_app, p_shard, true);
	SELECT s.hidden, s.head, s.revision, s.over INTO o_hidden, o_head, v_revision, v_over FROM @session s
	WHERE s.owner = p_owner AND s.session = p_session FOR UPDATE;
	IF NOT FOUND THEN
		o_status := 2;
		RETURN;
	END IF;
	IF p_reap AND NOT o_hidden THEN
		o_status := 5;
		RETURN;
	END IF;
	IF p_expired AND (o_hidden OR v_over IS NULL OR v_over > @now()) THEN
		o_status := 6;
		RETURN;
	END IF;
	SELECT max(l.base) INTO o_highest
	FROM @link l JOIN @session s ON s.owner = l.owner AND s.session = l.session
	WHERE l.owner = p_owner AND l.source = p_session AND NOT s.hidden;
	IF o_highest IS NULL THEN
		PERFORM @erase(p_owner, p_session);
		o_status := 0;
	ELSE
		o_status := CASE WHEN o_hidden AND v_revision <= o_highest THEN 3 ELSE 4 END;
	END IF;
END $$;

-- Hides a session that is read up to p_highest and gives back the rest, with the head after that.
-- False if it or its readers have changed meanwhile.
CREATE FUNCTION @hide(p_owner text, p_app text, p_session text, p_shard integer,
	p_highest bigint, p_mark bigint, p_next bigint, p_next_mark bigint, p_head bytea,
	p_modified bigint, p_state bytea, OUT o_done boolean)
LANGUAGE plpgsql AS $$
DECLARE
	v_highest bigint;
BEGIN
	PERFORM @enter(p_app, p_shard, true);
	o_done := false;
	PERFORM 1 FROM @session s WHERE s.owner = p_owner AND s.session = p_session
		AND s.mark = p_mark FOR UPDATE;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	SELECT max(l.base) INTO v_highest
	FROM @link l JOIN @session s ON s.owner = l.owner AND s.session = l.session
	WHERE l.owner = p_owner AND l.source = p_session AND NOT s.hidden;
	IF v_highest IS DISTINCT FROM p_highest THEN
		RETURN;
	END IF;
	DELETE FROM @record WHERE owner = p_owner AND session = p_session AND seq > p_next;
	DELETE FROM @queue WHERE owner = p_owner AND session = p_session;
	UPDATE @session SET revision = p_next, mark = p_next_mark, head = p_head,
		modified = p_modified, recency = p_modified / 86400000000, hidden = true,
		expires = NULL, over = NULL, expires_on = NULL, state = coalesce(p_state, state)
	WHERE owner = p_owner AND session = p_session;
	o_done := true;
END $$;

-- Replacing a log is a transaction of three: begin locks the session and empties its log, then
-- rows, then finish. Status of begin: 0, 2 no such session, 4 another revision (o_revision).
CREATE FUNCTION @replace_begin(p_owner text, p_app text, p_session text, p_shard integer,
	p_revision bigint, OUT o_status integer, OUT o_revision bigint, OUT o_hidden boolean)
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, true);
	SELECT s.revision, s.hidden INTO o_revision, o_hidden FROM @session s
	WHERE s.owner = p_owner AND s.session = p_session FOR UPDATE;
	IF NOT FOUND THEN
		o_status := 2;
	ELSIF o_revision <> p_revision THEN
		o_status := 4;
	ELSE
		DELETE FROM @record WHERE owner = p_owner AND session = p_session;
		o_status := 0;
	END IF;
END $$;

CREATE FUNCTION @replace_finish(p_owner text, p_app text, p_session text, p_base bigint,
	p_created bigint, p_next bigint, p_next_mark bigint, p_head bytea, p_modified bigint,
	p_ttl bigint, p_grace bigint, p_state bytea, p_links text[], p_bases bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_now bigint := @now();
	v_expires bigint := CASE WHEN p_ttl > 0 THEN v_now + p_ttl END;
BEGIN
	PERFORM @set_links(p_owner, p_app, p_session, p_links, p_bases);
	UPDATE @session SET revision = p_next, base = p_base, created = p_created,
		mark = p_next_mark, head = p_head, modified = p_modified,
		recency = p_modified / 86400000000, stored = v_now, expires = v_expires,
		over = v_expires + p_grace, expires_on = v_expires / 86400000000, state = p_state
	WHERE owner = p_owner AND session = p_session;
END $$;

CREATE FUNCTION @read_state(p_owner text, p_app text, p_shard integer)
RETURNS TABLE (o_key bytea, o_value bytea, o_time bigint, o_id text) LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, false);
	RETURN QUERY SELECT s.key, s.value, s.time, s.id FROM @state s WHERE s.owner = p_owner;
END $$;

-- Takes each item unless what is held of its key is as new or newer.
CREATE FUNCTION @apply_state(p_app text, p_shard integer, p_keys bytea[], p_values bytea[],
	p_times bigint[], p_ids text[], p_most bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM @enter(p_app, p_shard, true);
	PERFORM pg_advisory_xact_lock(hashtextextended('@state ' || p_app, 0));
	INSERT INTO @state AS s (owner, key, app, value, time, id)
	SELECT DISTINCT ON (i.key) p_app, i.key, p_app, i.value, i.time, i.id
	FROM unnest(p_keys, p_values, p_times, p_ids) WITH ORDINALITY i (key, value, time, id, n)
	ORDER BY i.key, i.time DESC, i.id COLLATE "C" DESC, i.n
	ON CONFLICT (owner, key) DO UPDATE
	SET value = excluded.value, time = excluded.time, id = excluded.id
	WHERE (s.time, s.id) < (excluded.time, excluded.id);
	PERFORM 1 FROM @state WHERE owner = p_app AND value IS NOT NULL
	HAVING sum(octet_length(key) + octet_length(value)) > p_most;
	IF FOUND THEN
		RAISE EXCEPTION 'the state grows over its limit' USING ERRCODE = 'SHF02';
	END IF;
END $$;

-- What every function on a queue begins with. SHF03: there is no such session. SHF04: it is hidden.
-- The lock of those that write orders the items and keeps their count.
CREATE FUNCTION @enter_queue(p_owner text, p_app text, p_session text, p_shard integer,
	p_write boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	v_hidden boolean;
BEGIN
	PERFORM @enter(p_app, p_shard, p_write);
	IF p_write THEN
		SELECT s.hidden INTO v_hidden FROM @session s
		WHERE s.owner = p_owner AND s.session = p_session FOR NO KEY UPDATE;
	ELSE
		SELECT s.hidden INTO v_hidden FROM @session s
		WHERE s.owner = p_owner AND s.session = p_session;
	END IF;
	IF v_hidden IS NULL THEN
		RAISE EXCEPTION 'there is no such session' USING ERRCODE = 'SHF03';
	ELSIF v_hidden THEN
		RAISE EXCEPTION 'the session was deleted' USING ERRCODE = 'SHF04';
	END IF;
END $$;

-- Status: 0 added, 1 there already, 2 the same id with other content, 3 the queue is full.
CREATE FUNCTION @queue_put(p_owner text, p_app text, p_session text, p_shard integer, p_id text,
	p_content bytea, p_environment bytea, p_priority integer, p_most bigint,
	OUT o_status integer)
LANGUAGE plpgsql AS $$
DECLARE
	v_count bigint;
	v_place bigint;
	v_same boolean;
BEGIN
	PERFORM @enter_queue(p_owner, p_app, p_session, p_shard, true);
	SELECT q.content = p_content AND q.environment IS NOT DISTINCT FROM p_environment
		AND q.priority = p_priority INTO v_same
	FROM @queue q WHERE q.owner = p_owner AND q.session = p_session AND q.id = p_id;
	IF FOUND THEN
		o_status := CASE WHEN v_same THEN 1 ELSE 2 END;
		RETURN;
	END IF;
	SELECT count(*), coalesce(max(q.place), 0) + 1 INTO v_count, v_place
	FROM @queue q WHERE q.owner = p_owner AND q.session = p_session;
	IF v_count >= p_most THEN
		o_status := 3;
		RETURN;
	END IF;
	INSERT INTO @queue (owner, session, id, app, priority, place, claims, enqueued,
		claimed_until, token, content, environment)
	VALUES (p_owner, p_session, p_id, p_app, p_priority, v_place, 0, @now(), 0, NULL,
		p_content, p_environment);
	o_status := 0;
END $$;

CREATE FUNCTION @queue_list(p_owner text, p_app text, p_session text, p_shard integer)
RETURNS TABLE (o_id text, o_content bytea, o_environment bytea, o_priority integer,
	o_claims integer, o_enqueued bigint, o_claimed_until bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
	PERFORM @enter_queue(p_owner, p_app, p_session, p_shard, false);
	RETURN QUERY SELECT q.id, q.content, q.environment, q.priority, q.claims, q.enqueued,
		q.claimed_until
	FROM @queue q WHERE q.owner = p_owner AND q.session = p_session
	ORDER BY q.priority DESC, q.place;
END $$;

-- Claims what is pending, up to the first item that is too large for the rest of p_bytes. p_retry:
-- what carries the token was claimed by a call whose answer was lost.
CREATE FUNCTION @queue_claim(p_owner text, p_app text, p_session text, p_shard integer,
	p_retry boolean, p_token text, p_lease bigint, p_limit integer, p_bytes bigint)
RETURNS TABLE (o_id text, o_content bytea, o_environment bytea, o_priority integer,
	o_claims integer, o_enqueued bigint, o_claimed_until bigint)
LANGUAGE plpgsql AS $$
DECLARE
	v_now bigint;
	v_claimed bigint := 0;
BEGIN
	PERFORM @enter_queue(p_owner, p_app, p_session, p_shard, true);
	v_now := @now();
	IF p_retry THEN
		SELECT count(*) INTO v_claimed FROM @queue q
		WHERE q.owner = p_owner AND q.session = p_session AND q.token = p_token;
	END IF;
	IF v_claimed = 0 THEN
		UPDATE @queue q SET token = NULL
		WHERE q.owner = p_owner AND q.session = p_session AND q.token = p_token;
		UPDATE @queue q SET token = p_token, claims = q.claims + 1,
			claimed_until = v_now + p_lease
		FROM (SELECT p.id, row_number() OVER w AS n,
				sum(octet_length(p.content) + 1) OVER w - 1 AS bytes
			FROM @queue p WHERE p.owner = p_owner AND p.session = p_session
				AND p.claimed_until <= v_now
			WINDOW w AS (ORDER BY p.priority DESC, p.place ROWS UNBOUNDED PRECEDING)) f
		WHERE q.owner = p_owner AND q.session = p_session AND q.id = f.id
			AND f.n <= p_limit AND (f.n = 1 OR f.bytes <= p_bytes);
	END IF;
	RETURN QUERY SELECT q.id, q.content, q.environment, q.priority, q.claims, q.enqueued,
		q.claimed_until
	FROM @queue q WHERE q.owner = p_owner AND q.session = p_session AND q.token = p_token
	ORDER BY q.priority DESC, q.place;
END $$;

-- Removes what carries the token; how many that were.
CREATE FUNCTION @queue_ack(p_owner text, p_app text, p_session text, p_shard integer,
	p_token text, OUT o_count bigint)
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM @enter_queue(p_owner, p_app, p_session, p_shard, true);
	DELETE FROM @queue WHERE owner = p_owner AND session = p_session AND token = p_token;
	GET DIAGNOSTICS o_count = ROW_COUNT;
END $$;

-- Status: 0 removed, 1 not there, 2 claimed.
CREATE FUNCTION @queue_cancel(p_owner text, p_app text, p_session text, p_shard integer,
	p_id text, OUT o_status integer)
LANGUAGE plpgsql AS $$
DECLARE
	v_until bigint;
BEGIN
	PERFORM @enter_queue(p_owner, p_app, p_session, p_shard, true);
	SELECT q.claimed_until INTO v_until FROM @queue q
	WHERE q.owner = p_owner AND q.session = p_session AND q.id = p_id;
	IF NOT FOUND THEN
		o_status := 1;
	ELSIF v_until > @now() THEN
		o_status := 2;
	ELSE
		DELETE FROM @queue WHERE owner = p_owner AND session = p_session AND id = p_id;
		o_status := 0;
	END IF;
END $$;
