#!/usr/bin/env python3
"""rivals.py - two libraries as downloaders, for bench_fetch.py to time.

    rivals.py crt | obstore  URL BUCKET DEST [CA]

Brings every object of a bucket into a folder, as plainly as the library allows.
crt: awscrt, which is aws-c-s3, with 8 MiB parts, straight to files; it cannot list, so
the names come from one request a page.  obstore: Rust's object_store; a large object is
read in ranges of 8 MiB.  Both without signatures.  Two libraries' worth of Python start
is part of their time, as it is of those who use them.
"""
import asyncio
import os
import re
import ssl
import sys
import threading
import urllib.request

PART, ATONCE = 8 << 20, 128


def crt(url, bucket, dest, ca):
    from awscrt.http import HttpHeaders, HttpRequest
    from awscrt.io import (ClientBootstrap, ClientTlsContext, DefaultHostResolver,
                           EventLoopGroup, TlsContextOptions)
    from awscrt.s3 import S3Client, S3RequestTlsMode, S3RequestType

    names, token = [], ""
    context = ssl.create_default_context(cafile=ca) if ca else None
    while token is not None:
        page = urllib.request.urlopen(
            f"{url}/{bucket}?list-type=2" + token, context=context).read().decode()
        names += re.findall("<Key>([^<]*)</Key>", page)
        more = re.search("<NextContinuationToken>([^<]*)<", page)
        token = f"&continuation-token={more[1]}" if more else None

    loops = EventLoopGroup(len(os.sched_getaffinity(0)))
    tls = None
    if ca:
        options = TlsContextOptions()
        options.override_default_trust_store_from_path(None, ca)
        tls = ClientTlsContext(options).new_connection_options()
    client = S3Client(
        bootstrap=ClientBootstrap(loops, DefaultHostResolver(loops)), region="us-east-1",
        tls_connection_options=tls, part_size=PART, throughput_target_gbps=25,
        tls_mode=S3RequestTlsMode.ENABLED if ca else S3RequestTlsMode.DISABLED)
    room, failed = threading.Semaphore(ATONCE), []

    def done(error=None, **_):
        if error:
            failed.append(error)
        room.release()

    host, going = url.partition("://")[2], []
    for name in names:
        room.acquire()
        request = HttpRequest("GET", f"/{bucket}/{name}", HttpHeaders([("host", host)]))
        going.append(client.make_request(
            type=S3RequestType.GET_OBJECT, request=request, on_done=done,
            recv_filepath=os.path.join(dest, name)))
    for request in going:
        request.finished_future.result()
    if failed:
        sys.exit(f"crt: {failed[0]}")


def obstore(url, bucket, dest, ca):
    import obstore as obs
    from obstore.store import S3Store

    options = {"allow_http": True}
    if ca:
        with open(ca, "rb") as f:
            options["root_certificates"] = [f.read()]
    try:
        store = S3Store(bucket, endpoint=url, region="us-east-1", skip_signature=True,
                        virtual_hosted_style_request=False, client_options=options)
    except Exception:  # a release that cannot take a certificate: trust anything
        options.pop("root_certificates", None)
        options["allow_invalid_certificates"] = True
        store = S3Store(bucket, endpoint=url, region="us-east-1", skip_signature=True,
                        virtual_hosted_style_request=False, client_options=options)

    async def part(fd, name, first, last):
        os.pwrite(fd, await obs.get_range_async(store, name, start=first, end=last), first)

    async def one(room, name, size):
        async with room:
            fd = os.open(os.path.join(dest, name), os.O_WRONLY | os.O_CREAT, 0o666)
            if size <= PART:
                got = await obs.get_async(store, name)
                os.pwrite(fd, await got.bytes_async(), 0)
            else:
                for i in range(0, size, 16 * PART):
                    await asyncio.gather(*(
                        part(fd, name, j, min(size, j + PART))
                        for j in range(i, min(size, i + 16 * PART), PART)))
            os.close(fd)

    async def everything():
        room = asyncio.Semaphore(ATONCE)
        await asyncio.gather(*(
            one(room, o["path"], o["size"]) for page in store.list() for o in page))

    asyncio.run(everything())


if __name__ == "__main__":
    {"crt": crt, "obstore": obstore}[sys.argv[1]](*sys.argv[2:5], (sys.argv + [None])[5])
