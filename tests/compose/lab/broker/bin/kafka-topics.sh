#!/bin/sh
# The two variables hold several options each.
# shellcheck disable=SC2086
exec java ${KAFKA_HEAP_OPTS:-} ${KAFKA_JVM_PERFORMANCE_OPTS:-} -cp '/opt/kafka/libs/*' \
  org.apache.kafka.tools.TopicCommand "$@"
