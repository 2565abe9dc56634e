"""Commits as authentik's layers make them: Django's sessions and models, django-tenants, psqlextra's upsert, psycopg.

The models have authentik's names and the columns of the double's schema; the code between them is this file's. Reads a
case's name a line, prepares it, says "ready", waits for a line, does it, says "done", waits for another and hangs up.
commits.py PORT [server]: with server, psycopg binds parameters on the server, by the extended protocol.
"""

import pickle
import sys
from datetime import timedelta
from uuid import uuid4

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "psqlextra.backend",
            "HOST": "127.0.0.1",
            "PORT": sys.argv[1],
            "NAME": "authentik",
            "USER": "authentik",
            "OPTIONS": {"sslmode": "disable", "server_side_binding": "server" in sys.argv[2:]},
        }
    },
    POSTGRES_EXTRA_DB_BACKEND_BASE="django_tenants.postgresql_backend",
    DATABASE_ROUTERS=["django_tenants.routers.TenantSyncRouter"],
    TENANT_MODEL="commits.Tenant",
    TENANT_DOMAIN_MODEL="commits.Domain",
    CACHES={"default": {"BACKEND": "__main__.Cache", "KEY_PREFIX": "authentik_cache", "KEY_FUNCTION": "django_tenants.cache.make_key"}},
    REST_FRAMEWORK={"DEFAULT_THROTTLE_RATES": {"anon": "1000/second"}},
    INSTALLED_APPS=["django.contrib.contenttypes"],
    SECRET_KEY="commits",
    USE_TZ=True,
)
django.setup()

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessions  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.cache.backends.base import BaseCache  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from psqlextra.models import PostgresModel  # noqa: E402
from psqlextra.types import ConflictAction  # noqa: E402
from rest_framework.throttling import AnonRateThrottle  # noqa: E402


class Session(models.Model):
    session_key = models.CharField(max_length=40, primary_key=True)
    expires = models.DateTimeField(null=True)
    expiring = models.BooleanField(default=True)
    session_data = models.BinaryField()
    last_ip = models.GenericIPAddressField(default="10.0.0.1")
    last_user_agent = models.TextField()
    last_used = models.DateTimeField(auto_now=True)

    class Meta:
        app_label, db_table = "commits", "authentik_core_session"


class User(models.Model):
    last_login = models.DateTimeField(null=True)
    email = models.TextField()

    class Meta:
        app_label, db_table = "commits", "authentik_core_user"


class AuthenticatedSession(models.Model):
    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True)
    uuid = models.UUIDField(default=uuid4, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE)

    class Meta:
        app_label, db_table = "commits", "authentik_core_authenticatedsession"


class Task(models.Model):
    message_id = models.UUIDField(primary_key=True, default=uuid4)
    queue_name = models.TextField(default="default")
    actor_name = models.TextField(default="nothing")
    message = models.BinaryField(null=True)
    state = models.CharField(default="queued")
    mtime = models.DateTimeField(default=timezone.now)
    retries = models.BigIntegerField(default=0)
    aggregated_status = models.TextField(default="queued")
    expiring = models.BooleanField(default=True)
    tenant_id = models.UUIDField()

    class Meta:
        app_label, db_table = "commits", "authentik_tasks_task"


class TaskLog(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid4)
    task = models.ForeignKey(Task, on_delete=models.CASCADE)
    event = models.TextField()
    log_level = models.TextField(default="info")
    logger = models.TextField(default="nothing")
    timestamp = models.DateTimeField(default=timezone.now)
    attributes = models.JSONField(default=dict)
    previous = models.BooleanField(default=False)

    class Meta:
        app_label, db_table = "commits", "authentik_tasks_tasklog"


class Entry(PostgresModel):
    cache_key = models.TextField(primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField()

    class Meta:
        app_label, db_table = "commits", "django_postgres_cache_cacheentry"
        base_manager_name = "objects"


class Cache(BaseCache):
    """As far as a throttle and a policy result need one."""

    def __init__(self, _location, params):
        super().__init__(params)

    def get(self, key, default=None, version=None):
        entry = Entry.objects.filter(cache_key=self.make_key(key, version), expires__gte=timezone.now()).first()
        return pickle.loads(bytes.fromhex(entry.value)) if entry else default

    def set(self, key, value, timeout=300, version=None):
        Entry.objects.on_conflict(["cache_key"], ConflictAction.UPDATE).insert(
            cache_key=self.make_key(key, version), value=pickle.dumps(value).hex(), expires=timezone.now() + timedelta(seconds=timeout or 300)
        )

    def touch(self, key, timeout=300, version=None):
        return bool(Entry.objects.filter(cache_key=self.make_key(key, version)).update(expires=timezone.now() + timedelta(seconds=timeout)))

    def delete(self, key, version=None):
        return bool(Entry.objects.filter(cache_key=self.make_key(key, version)).delete()[0])


class Sessions(DatabaseSessions):
    @classmethod
    def get_model_class(cls):
        return Session

    def encode(self, session_dict):
        return pickle.dumps(session_dict, protocol=pickle.HIGHEST_PROTOCOL)

    def decode(self, session_data):
        return pickle.loads(session_data)

    def load(self):
        found = Session.objects.filter(session_key=self.session_key, expires__gt=timezone.now()).first()
        return self.decode(found.session_data) if found else {}

    def create_model_instance(self, data):
        return Session(
            session_key=self._get_or_create_session_key(),
            expires=self.get_expiry_date(),
            session_data=self.encode(data),
            # With a semicolon, which must not be taken for the end of a statement.
            last_user_agent="Mozilla/5.0 (X11; Linux x86_64)",
        )


    def delete(self, session_key=None):
        """As Django's collector does where the models are an installed app's: what hangs on the row goes first."""
        with transaction.atomic():
            AuthenticatedSession.objects.filter(session_id=session_key or self.session_key).delete()
            Session.objects.filter(session_key=session_key or self.session_key).delete()


class Request:
    """As far as a throttle looks at one."""

    user = None
    META = {"REMOTE_ADDR": "10.0.0.1"}
    headers = {}


def kept(**data):
    """A session that is in the database, loaded anew."""
    made = Sessions()
    made.update({"plan": "x" * 3000, **data})
    made.create()
    made.save()
    again = Sessions(made.session_key)
    again.accessed = again["plan"]
    return again


def change(session, **data):
    session.update(data)
    session.save()


def without(session, key):
    del session[key]
    session.save()


def earlier(session):
    session.set_expiry(60)
    session.save()


def logged_in(session):
    return AuthenticatedSession.objects.create(session_id=session.session_key, user_id=1)


def in_flow():
    return kept(**{"authentik/flows/plan": "x"})


def kept_by_somebody():
    """A session in which somebody is logged in, in a flow as after a password change, loaded anew."""
    session = in_flow()
    logged_in(session)
    return session


def note(task):
    TaskLog.objects.create(task=task, event="Task is being processed")


def queued(message_id=None):
    """A task as the queue puts it in, anew too: it and a note, in one transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_uuid FROM authentik_tenants_tenant LIMIT 1")
        (tenant,) = cursor.fetchone()
    with transaction.atomic():
        task, _ = Task.objects.defer("message").update_or_create(
            message_id=message_id or uuid4(), defaults={"state": "queued", "message": b"x"}, create_defaults={"tenant_id": tenant, "message": b"x"}
        )
        note(task)
    return task


def taken():
    task = queued()
    Task.objects.filter(message_id=task.message_id).update(state="consumed")
    return task


def together(*actions):
    with transaction.atomic():
        for action in actions:
            action()


def seen_user():
    User(pk=1, last_login=timezone.now()).save(update_fields=["last_login"])


def changed_user():
    User(pk=1, last_login=timezone.now(), email=str(uuid4())).save(update_fields=["last_login", "email"])


def nothing():
    return None


# By sentence: what is there before, and what is then done with it.
CASES = {
    "a new session": (nothing, lambda _: Sessions().create()),
    "a session that a flow changes": (kept, lambda session: change(session, plan="y" * 5000)),
    "who is logged in": (kept, logged_in),
    "a throttle counter": (nothing, lambda _: AnonRateThrottle().allow_request(Request(), None)),
    "a throttle counter again": (lambda: AnonRateThrottle().allow_request(Request(), None), lambda _: AnonRateThrottle().allow_request(Request(), None)),
    "a policy result": (nothing, lambda _: cache.set("goauthentik.io/policies/0af_x", True)),
    "an application list that is touched": (lambda: cache.set("goauthentik.io/policies/app_access/1", []), lambda _: cache.touch("goauthentik.io/policies/app_access/1")),
    "a flow plan": (nothing, lambda _: cache.set("goauthentik.io/flows/planner/1#1", "plan")),
    "a session and a policy result in one transaction": (
        kept,
        lambda session: together(lambda: change(session, plan="z"), lambda: cache.set("goauthentik.io/policies/0af_y", True)),
    ),
    "a seen SAML response": (nothing, lambda _: cache.set("authentik_saml_seen_ids/1", True)),
    "a cache entry that is deleted": (lambda: cache.set("goauthentik.io/policies/0af_z", True), lambda _: cache.delete("goauthentik.io/policies/0af_z")),
    "a new key for a session in a flow": (in_flow, lambda session: session.cycle_key()),
    "the end of a session in a flow": (in_flow, lambda session: session.flush()),
    "a new key for somebody who is logged in": (kept_by_somebody, lambda session: session.cycle_key()),
    "the end of a session in which nobody is": (kept, lambda session: session.flush()),
    "a logout of somebody who is logged in": (kept_by_somebody, lambda session: session.flush()),
    "an earlier end of a session": (kept, earlier),
    "the end of an impersonation": (lambda: kept(**{"authentik/impersonate/user": "somebody"}), lambda session: without(session, "authentik/impersonate/user")),
    "a user's last login": (nothing, lambda _: seen_user()),
    "a user's address": (nothing, lambda _: changed_user()),
    "a session and a last login in one transaction": (kept, lambda session: together(lambda: change(session, plan="w"), seen_user)),
    "a session and a user in one transaction": (kept, lambda session: together(lambda: change(session, plan="w"), changed_user)),
    "a task": (nothing, lambda _: queued()),
    "how far a task is": (queued, lambda task: Task.objects.filter(message_id=task.message_id).exclude(state="done").update(state="consumed", mtime=timezone.now())),
    "a note of a task": (taken, note),
    "a task that is done": (
        taken,
        lambda task: Task.objects.filter(message_id=task.message_id).exclude(state="queued").update(state="done", message=b"", mtime=timezone.now()),
    ),
    "a task that is put into the queue again": (taken, lambda task: queued(task.message_id)),
    "a user and a session in one transaction": (kept, lambda session: together(changed_user, lambda: change(session, plan="v"))),
}


def say(what):
    print(what, flush=True)


for line in sys.stdin:
    before, act = CASES[line.rstrip("\n")]
    found = before()
    connection.ensure_connection()
    say("ready")
    sys.stdin.readline()
    act(found)
    say("done")
    sys.stdin.readline()
    connection.close()
