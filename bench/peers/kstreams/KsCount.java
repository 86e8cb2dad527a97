import java.io.IOException;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.state.WindowStore;

/** Events of each key in each hour. args: bootstrap, application id, state dir, prefix of topics, `close` (a count when its window ends) or `event` (one for each event). Records are keyed by what is counted, so no repartition topic. */
public class KsCount {
  static final Duration SIZE = Duration.ofHours(1), BEHIND = Duration.ofMinutes(1);
  static final ThreadLocal<View> VIEW = ThreadLocal.withInitial(View::new);

  /** An event's time; null for what is unusable. */
  static Long time(byte[] value) {
    View v = VIEW.get();
    return v.parse(value) ? v.ts : null;
  }

  /** Of records without a time: negative, so that they are dropped. */
  static final class Time implements TimestampExtractor {
    @Override public long extract(ConsumerRecord<Object, Object> r, long partitionTime) { return r.value() == null ? -1 : (Long) r.value(); }
  }

  static byte[] encode(Windowed<String> w, Long n) {
    try { return VIEW.get().count(w.key(), w.window().start(), n); } catch (IOException e) { throw new RuntimeException(e); }
  }

  static Topology topology(String prefix, boolean close) {
    Serde<Long> times = Serdes.serdeFrom(new LongSerializer(), (topic, value) -> time(value));
    StreamsBuilder builder = new StreamsBuilder();
    TimeWindowedKStream<String, Long> hours = builder.stream(prefix + View.IN, Consumed.with(Serdes.String(), times).withTimestampExtractor(new Time()))
        .groupByKey(Grouped.with(Serdes.String(), times)).windowedBy(TimeWindows.ofSizeAndGrace(SIZE, BEHIND));
    if (close) hours = hours.emitStrategy(EmitStrategy.onWindowClose());
    hours.count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled())
        .toStream().map((w, n) -> KeyValue.pair(w.key(), encode(w, n))).to(prefix + View.OUT, Produced.with(Serdes.String(), Serdes.ByteArray()));
    return builder.build();
  }

  public static void main(String[] x) throws Exception {
    Properties p = new Properties();
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, x[0]);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, x[1]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, x[2]);
    p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.AT_LEAST_ONCE);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 5000);
    p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);   // else what closes within a second after the last time waits for another record
    p.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    p.put(StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), "1");
    p.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 131072);
    p.put(StreamsConfig.producerPrefix(ProducerConfig.BUFFER_MEMORY_CONFIG), 67108864L);
    KafkaStreams ks = new KafkaStreams(topology(x[3], x[4].equals("close")), p);
    ks.setUncaughtExceptionHandler(e -> { e.printStackTrace(); return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT; });
    CountDownLatch l = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> { ks.close(Duration.ofSeconds(10)); l.countDown(); }));
    ks.start(); System.out.println("STARTED"); l.await();
  }
}
