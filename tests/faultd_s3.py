"""faultd_s3.py - the part of S3 that faultd.py speaks: objects, lists, signatures.

Nothing here fails on purpose and nothing touches a socket: a Store holds buckets of
objects in memory, and functions turn requests into answers and check what clients
claim (SigV4 signatures, checksums).  Keys are str; whatever bytes a request held that
are not UTF-8 live on as surrogates.
"""
import base64
import functools
import hashlib
import hmac
import os
import random
import threading
import time
import zlib
from email.utils import formatdate
from urllib.parse import quote, quote_plus, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape


# ---- checksums ----

def _table(poly):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (poly if i & 1 else 0)
        table.append(i)
    return table


def _crc(table, ones, data):
    crc = ones
    for b in data:
        crc = table[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ ones


_CRC32C, _CRC64NVME = _table(0x82F63B78), _table(0x9A6C9329AC4BC9B5)

try:  # scripts/deps.sh servers: a hundred times as fast
    from awscrt.checksums import crc32c, crc64nvme
except ImportError:
    def crc32c(d):
        return _crc(_CRC32C, 0xFFFFFFFF, d)

    def crc64nvme(d):
        return _crc(_CRC64NVME, 2**64 - 1, d)

CHECKSUMS = {
    "crc32": lambda d: zlib.crc32(d).to_bytes(4, "big"),
    "crc32c": lambda d: crc32c(d).to_bytes(4, "big"),
    "crc64nvme": lambda d: crc64nvme(d).to_bytes(8, "big"),
    "sha1": lambda d: hashlib.sha1(d).digest(),
    "sha256": lambda d: hashlib.sha256(d).digest(),
}


@functools.lru_cache(maxsize=64)  # it is slow
def checksum(algorithm, data):
    return base64.b64encode(CHECKSUMS[algorithm](data)).decode()


# ---- objects ----

class Object:
    """Bytes with what S3 says about them.  part_size: uploaded in such parts."""

    def __init__(self, data, mtime=None, part_size=0):
        self.data = data
        self.mtime = int(time.time() if mtime is None else mtime)
        self.part_size = part_size
        self.etag = hashlib.md5(data).hexdigest()
        self._sums = {}
        if part_size:
            md5s = b"".join(hashlib.md5(p).digest() for p in self.parts())
            self.etag = f"{hashlib.md5(md5s).hexdigest()}-{len(self.parts())}"

    def parts(self):
        step = self.part_size or max(1, len(self.data))
        return [self.data[i:i + step] for i in range(0, len(self.data), step)] or [b""]

    def checksum(self, algorithm, composite=False):
        if (algorithm, composite) not in self._sums:
            if composite:
                each = b"".join(CHECKSUMS[algorithm](p) for p in self.parts())
                value = f"{checksum(algorithm, each)}-{len(self.parts())}"
            else:
                value = checksum(algorithm, self.data)
            self._sums[algorithm, composite] = value
        return self._sums[algorithm, composite]


class Store:
    """Buckets of objects; all methods may be called by several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.buckets = {}
        self.uploads, self.begun = {}, []

    def bucket(self, name):
        return self.buckets.setdefault(name, {})

    def add_folder(self, bucket, folder):
        for at, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as f:
                    self.bucket(bucket)[os.path.relpath(path, folder)] = Object(
                        f.read(), os.stat(path).st_mtime)

    def add_spec(self, bucket, spec):
        """{"key": K} with "text", "file", or "size" and "seed" (random bytes)."""
        if "file" in spec:
            with open(spec["file"], "rb") as f:
                data = f.read()
        elif "size" in spec:
            data = random.Random(spec.get("seed", 1)).randbytes(spec["size"])
        else:
            data = spec.get("text", "").encode()
        self.bucket(bucket)[spec["key"]] = Object(
            data, spec.get("mtime"), spec.get("part_size", 0))

    def change(self, bucket, key, size=None):
        """The object is overwritten with other bytes."""
        with self.lock:
            old = self.buckets[bucket][key]
            n = len(old.data) if size is None else size
            self.buckets[bucket][key] = Object(
                random.Random(old.etag).randbytes(n), None, old.part_size)


# ---- listing ----

def key_order(key):
    return key.encode("utf-8", "surrogatepass")


def _token(key):
    # Full of what must be percent-encoded, so that who forgets it is found out.
    return "1/+ =&%2B" + base64.b64encode(key_order(key)).decode()


def _untoken(token):
    return base64.b64decode(token[len("1/+ =&%2B"):]).decode("utf-8", "surrogatepass")


def select(store, bucket, query, page):
    """One page: keys in order, common prefixes, and the token of the next page."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("start-after", "")
    if "continuation-token" in query:
        after = _untoken(query["continuation-token"])
    limit = min(int(query.get("max-keys") or 1000), page)
    found, seen = [], set()
    with store.lock:
        keys = sorted((k for k in store.buckets[bucket] if k.startswith(prefix)),
                      key=key_order)
    for k in keys:
        if key_order(k) <= key_order(after):
            continue
        cut = k.find(delimiter, len(prefix)) if delimiter else -1
        name, is_prefix = (k[:cut + len(delimiter)], True) if cut >= 0 else (k, False)
        if is_prefix and (name in seen or after.startswith(name)):
            continue
        if len(found) == limit:
            return found, _token(last)
        seen.add(name)
        found.append((name, is_prefix))
        last = k
    return found, None


def list_xml(store, bucket, query, page, encode=True):
    found, token = select(store, bucket, query, page)
    encode = encode and query.get("encoding-type") == "url"

    def name(k):  # as AWS does it: '/' stays, a space becomes '+'
        return quote_plus(key_order(k), safe="/") if encode else escape(k)

    rows = []
    for k, is_prefix in found:
        if is_prefix:
            rows.append(f"<CommonPrefixes><Prefix>{name(k)}</Prefix></CommonPrefixes>")
            continue
        o = store.buckets[bucket].get(k)
        if o:
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(o.mtime))
            rows.append(
                f"<Contents><Key>{name(k)}</Key><LastModified>{when}</LastModified>"
                f"<ETag>&quot;{o.etag}&quot;</ETag><Size>{len(o.data)}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{bucket}</Name><Prefix>{name(query.get('prefix', ''))}</Prefix>"
        f"<KeyCount>{len(found)}</KeyCount><MaxKeys>{page}</MaxKeys>"
        + ("<EncodingType>url</EncodingType>" if encode else "")
        + f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>"
        + (f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
           if token else "")
        + "".join(rows) + "</ListBucketResult>").encode("utf-8", "surrogatepass")


def error_xml(code, message, **more):
    rows = "".join(f"<{k}>{escape(str(v))}</{k}>" for k, v in more.items())
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<Error><Code>{code}</Code><Message>{escape(message)}</Message>{rows}"
            "<RequestId>FAULTD</RequestId></Error>").encode()


# ---- signatures ----

class Refused(Exception):
    def __init__(self, status, code, message, **more):
        super().__init__(message)
        self.status, self.code, self.message, self.more = status, code, message, more


def parse_query(raw):
    pairs = [p.partition("=") for p in raw.split("&") if p]
    return {unquote(k): unquote(v, errors="surrogateescape") for k, _, v in pairs}


def _canonical_query(raw):
    pairs = [p.partition("=") for p in raw.split("&") if p]
    return "&".join(f"{k}={v}" for k, v in sorted((k, v) for k, _, v in pairs))


def signature(secret, scope, text):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def check_signature(req, auth, region, now):
    """Raises Refused unless the request is signed by auth = (id, secret, token)."""
    h = req.headers
    given = h.get("authorization", "")
    if not given:
        raise Refused(403, "AccessDenied", "Access Denied")
    if not given.startswith("AWS4-HMAC-SHA256 "):
        raise Refused(400, "InvalidArgument", "Unsupported Authorization Type")
    try:
        field = dict(f.strip().split("=", 1) for f in given[17:].split(","))
        who, scope = field["Credential"].split("/", 1)
        signed, day = field["SignedHeaders"].split(";"), scope.split("/")[0]
        scope_region = scope.split("/")[1]
        sent = h["x-amz-date"]
        sent_at = time.mktime(time.strptime(sent, "%Y%m%dT%H%M%SZ")) - time.timezone
    except (KeyError, ValueError, IndexError) as e:
        raise Refused(400, "AuthorizationHeaderMalformed", f"malformed: {e}") from e
    if who != auth[0]:
        raise Refused(403, "InvalidAccessKeyId", "The AWS Access Key Id is unknown.")
    if region and scope_region != region:
        raise Refused(400, "AuthorizationHeaderMalformed",
                      f"the region '{scope_region}' is wrong; expecting '{region}'",
                      Region=region)
    if abs(sent_at - now) > 900:
        raise Refused(403, "RequestTimeTooSkewed",
                      "The difference between the request time and the current time "
                      "is too large.")
    if len(auth) > 2 and h.get("x-amz-security-token") != auth[2]:
        raise Refused(400, "InvalidToken", "The provided token is malformed.")
    must = ["host"] + [k for k in h if k.startswith("x-amz-") or k == "range"]
    unsigned = [k for k in must if k not in signed]
    if unsigned or signed != sorted(signed) or not sent.startswith(day):
        raise Refused(403, "AccessDenied",
                      f"headers present and not signed: {', '.join(unsigned)}")
    # The path as S3 sees it: decoded, then encoded once.
    path = quote(unquote(req.path, errors="surrogateescape").encode(
        "utf-8", "surrogateescape"), safe="/-._~")
    canonical = "\n".join(
        [req.method, path, _canonical_query(req.query_raw)]
        + [f"{k}:{' '.join(h.get(k, '').split())}" for k in signed]
        + ["", ";".join(signed), h.get("x-amz-content-sha256", "")])
    text = "\n".join(["AWS4-HMAC-SHA256", sent, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    if not hmac.compare_digest(signature(auth[1], scope, text), field["Signature"]):
        raise Refused(403, "SignatureDoesNotMatch",
                      "The request signature we calculated does not match.",
                      CanonicalRequest=canonical)


def check_body(req):
    """Raises Refused unless the body is what the headers claim."""
    h, body = req.headers, req.body
    sha = h.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    if sha.startswith("STREAMING-"):
        raise Refused(501, "NotImplemented", "chunked signatures are not spoken here")
    if sha != "UNSIGNED-PAYLOAD" and sha != hashlib.sha256(body).hexdigest():
        raise Refused(400, "XAmzContentSHA256Mismatch", "sha256 of the body differs")
    md5 = h.get("content-md5")
    if md5 and md5 != base64.b64encode(hashlib.md5(body).digest()).decode():
        raise Refused(400, "BadDigest", "Content-MD5 differs")
    for name in CHECKSUMS if req.op != "complete" else ():  # there it is the object's
        want = h.get(f"x-amz-checksum-{name}")
        if want and want != checksum(name, body):
            raise Refused(400, "BadDigest", f"{name} differs")


# ---- uploads ----

def complete_parts(upload, body):
    """The whole object's bytes from the list in a CompleteMultipartUpload."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as e:
        raise Refused(400, "MalformedXML", str(e)) from e
    data, last = [], 0
    for part in root.iter():
        if part.tag.rpartition("}")[2] != "Part":
            continue
        field = {c.tag.rpartition("}")[2]: (c.text or "").strip() for c in part}
        number = int(field["PartNumber"])
        have = upload["parts"].get(number)
        if not have or have.etag != field["ETag"].strip('"'):
            raise Refused(400, "InvalidPart", f"part {number} is not what was sent")
        if number <= last:
            raise Refused(400, "InvalidPartOrder", "parts must ascend")
        if data and len(data[-1]) < 5 << 20:
            raise Refused(400, "EntityTooSmall", f"part {last} is under 5 MiB")
        last = number
        data.append(have.data)
    if not data:
        raise Refused(400, "MalformedXML", "no parts")
    return data


def http_date(at):
    return formatdate(at, usegmt=True)
