#!/usr/bin/env python3
"""credsd.py - whoever gives out short-lived AWS keys, and an S3 that honours them.

    credsd.py --ready FILE --ttl SECONDS [--token FILE] [the options of faultd.py]

One port plays all of them, told apart by path:

    POST /                 STS: AssumeRole, signed with BASE/base-secret or with keys that
                           were given out here; AssumeRoleWithWebIdentity with the content
                           of --token as the token
    GET  /ecs              the container's service; Authorization is the content of --token
    PUT  /latest/api/token, GET /latest/meta-data/iam/security-credentials/[role]
                           the instance's metadata, version 2 only
    anything else          S3, for keys that were given out and have not expired

Every answer has new keys, KEY1, KEY2 and so on, which live --ttl seconds.  A fault
(faultd.py) with op=sts, ecs, imds or imdstoken spoils one of them.  GET /-/log says who
was asked, and which keys signed.
"""
import datetime
import hashlib
import json
import time
from urllib.parse import parse_qsl

import faultd
import faultd_s3 as s3
from faultd import Response

ROLES = "/latest/meta-data/iam/security-credentials/"
XMLNS = "https://sts.amazonaws.com/doc/2011-06-15/"


class Server(faultd.Server):
    def __init__(self, opt):
        super().__init__(opt)
        self.issued = {"BASE": ("base-secret", None, time.time() + 1e9)}
        self.sessions = set()

    def note(self, what=None, **more):
        with self.lock:
            if self.log_file:
                print(json.dumps({**(what or {}), **more}), file=self.log_file, flush=True)

    def answer(self, rq):
        rq.path = rq.path or "/"
        try:
            if rq.path == "/" and rq.method == "POST":
                rq.op = "sts"
                return self.sts(rq, dict(parse_qsl(rq.body.decode())))
            if rq.path == "/ecs":
                rq.op = "ecs"
                return self.container(rq)
            if rq.path.startswith("/latest/"):
                rq.op = "imds" if rq.method == "GET" else "imdstoken"
                return self.metadata(rq)
            if rq.op != "control":
                self.who(rq)
        except s3.Refused as e:
            return (self.sts_error(e.code, e.message) if rq.op == "sts"
                    else faultd.error(e.status, e.code, e.message))
        return super().answer(rq)

    def who(self, rq):
        given = rq.headers.get("authorization", "")
        who = given.partition("Credential=")[2].partition("/")[0]
        if who not in self.issued:
            raise s3.Refused(403, "InvalidAccessKeyId", "nobody has this key")
        secret, token, until = self.issued[who]
        if time.time() > until:
            raise s3.Refused(400, "ExpiredToken", "The provided token has expired.")
        rq.key_id = who
        s3.check_signature(rq, (who, secret, token) if token else (who, secret), None,
                           self.now())
        self.note(op="signed", by=who)

    def issue(self):
        with self.lock:
            n = len(self.issued)
            until = time.time() + self.opt.ttl
            keys = (f"KEY{n}", f"secret/{n}+x", f"token=={n}")
            self.issued[keys[0]] = (keys[1], keys[2], until)
        until += self.clock  # by the clock that the Date of the answer shows
        text = datetime.datetime.fromtimestamp(until, datetime.timezone.utc)
        return *keys, text.strftime("%Y-%m-%dT%H:%M:%SZ")

    # -- STS --

    def sts(self, rq, form):
        kind = form.get("Action", "")
        if kind == "AssumeRole":
            self.check_form(rq)
        elif kind == "AssumeRoleWithWebIdentity":
            if "authorization" in rq.headers:
                return self.sts_error("SignatureDoesNotMatch", "this call is not signed")
            if form.get("WebIdentityToken") != self.file_token():
                return self.sts_error("InvalidIdentityToken", "not the token")
        else:
            return self.sts_error("InvalidAction", kind)
        if not form["RoleArn"].startswith("arn:aws:iam::") or not form["RoleSessionName"]:
            return self.sts_error("ValidationError", "no role")
        self.note(op="sts-form", **{k: v for k, v in form.items() if "Token" not in k})
        a, b, c, until = self.issue()
        return Response(200, (
            f'<{kind}Response xmlns="{XMLNS}"><{kind}Result><Credentials>'
            f"<AccessKeyId>{a}</AccessKeyId><SecretAccessKey>{b}</SecretAccessKey>"
            f"<SessionToken>{c}</SessionToken><Expiration>{until}</Expiration>"
            f"</Credentials></{kind}Result></{kind}Response>").encode(),
            {"Content-Type": "text/xml"})

    def sts_error(self, code, message):
        return Response(403, (
            f'<ErrorResponse xmlns="{XMLNS}"><Error><Type>Sender</Type><Code>{code}</Code>'
            f"<Message>{message}</Message></Error></ErrorResponse>").encode(),
            {"Content-Type": "text/xml"})

    def check_form(self, rq):
        """The signature of a service that is not S3: the body's hash is no header."""
        h = rq.headers
        field = dict(f.strip().split("=", 1) for f in h.get(
            "authorization", "AWS4-HMAC-SHA256 Credential=/").partition(" ")[2].split(","))
        who, _, scope = field["Credential"].partition("/")
        secret, token, until = self.issued.get(who, ("", None, 0))
        names = field.get("SignedHeaders", "").split(";")
        canonical = "\n".join(
            ["POST", "/", ""] + [f"{k}:{h.get(k, '')}" for k in names]
            + ["", ";".join(names), hashlib.sha256(rq.body).hexdigest()])
        text = "\n".join(["AWS4-HMAC-SHA256", h.get("x-amz-date", ""), scope,
                          hashlib.sha256(canonical.encode()).hexdigest()])
        when = time.strptime(h["x-amz-date"], "%Y%m%dT%H%M%SZ")
        if abs(time.mktime(when) - time.timezone - self.now()) > 300:
            raise s3.Refused(403, "SignatureDoesNotMatch", "Signature expired")
        if (until < time.time() or "/sts/" not in scope or "host" not in names
                or h.get("x-amz-security-token") != token
                or s3.signature(secret, scope, text) != field.get("Signature")):
            raise s3.Refused(403, "InvalidClientTokenId", "the signature is not valid")

    # -- the container's service, and the machine's --

    def file_token(self):
        with open(self.opt.token, encoding="ascii") as f:
            return f.read().strip()

    def json(self, **more):
        a, b, c, until = self.issue()
        return Response(200, json.dumps(dict(
            AccessKeyId=a, SecretAccessKey=b, Token=c, Expiration=until, **more)).encode(),
            {"Content-Type": "application/json"})

    def container(self, rq):
        if self.opt.token and rq.headers.get("authorization") != self.file_token():
            return Response(401, b'{"Code":"AccessDenied","Message":"who are you"}')
        return self.json(AccountId="1")

    def metadata(self, rq):
        h = rq.headers
        if rq.method == "PUT":
            if int(h.get("x-aws-ec2-metadata-token-ttl-seconds", 0)) not in range(1, 21601):
                return Response(400)
            self.sessions.add(f"session-{len(self.sessions)}==")
            return Response(200, sorted(self.sessions)[-1].encode())
        if h.get("x-aws-ec2-metadata-token") not in self.sessions:
            return Response(401)
        if rq.path == ROLES:
            return Response(200, b"my-role")
        if rq.path == ROLES + "my-role":
            return self.json(Code="Success", Type="AWS-HMAC")
        return Response(404)


def options():
    p = faultd.options()
    p.add_argument("--ttl", type=float, default=3600)
    p.add_argument("--token")
    return p


if __name__ == "__main__":
    faultd.serve(Server, options().parse_args())
