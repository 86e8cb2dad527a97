import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.async.*;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import static java.nio.charset.StandardCharsets.UTF_8;

/** args: bootstrap, group id, checkpoint dir, base URL of the API, calls in flight. Flink's async I/O with the JDK's HTTP client. */
public class AsyncJob {
  static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
  static final ObjectMapper JSON = new ObjectMapper();

  static final class Value implements KafkaRecordDeserializationSchema<byte[]> {
    @Override public void deserialize(ConsumerRecord<byte[], byte[]> c, Collector<byte[]> out) { out.collect(c.value()); }
    @Override public TypeInformation<byte[]> getProducedType() { return BYTES; }
  }

  static final class Enrich extends RichAsyncFunction<byte[], Tuple2<byte[], byte[]>> {
    final String api; transient HttpClient client;
    Enrich(String api) { this.api = api; }
    @Override public void open(OpenContext c) { client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).executor(Runnable::run).build(); }

    @Override public void asyncInvoke(byte[] value, ResultFuture<Tuple2<byte[], byte[]>> out) throws Exception {
      JsonNode snapshot = JSON.readTree(value);
      if (snapshot.path("enrichments").has("place")) { out.complete(List.of()); return; }
      HttpRequest request = HttpRequest.newBuilder(URI.create(api + "/places/" + snapshot.get("state").get("cell").asLong())).timeout(Duration.ofSeconds(10)).build();
      client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray()).whenComplete((response, error) -> {
        if (error != null) { out.completeExceptionally(error); return; }
        try { out.complete(List.of(answer(snapshot, response))); } catch (Exception e) { out.completeExceptionally(e); }
      });
    }

    static Tuple2<byte[], byte[]> answer(JsonNode snapshot, HttpResponse<byte[]> response) throws Exception {
      if (response.statusCode() != 200) throw new IllegalStateException("status " + response.statusCode());
      JsonNode place = JSON.readTree(response.body());
      if (!place.path("number").isIntegralNumber() || !place.path("name").isTextual() || !place.path("district").isTextual() || !place.path("limit_kmh").isNumber())
        throw new IllegalStateException("not a place: " + place);
      ObjectNode answer = JSON.createObjectNode();
      answer.set("device_id", snapshot.get("device_id"));
      answer.set("first_seen", snapshot.get("first_seen"));
      answer.put("enrichment", "place");
      answer.set("version", snapshot.get("version"));
      answer.put("status", "result");
      answer.put("ts", Instant.now().toString());
      answer.putObject("result").set("place", place);
      return Tuple2.of(snapshot.get("device_id").asText().getBytes(UTF_8), JSON.writeValueAsBytes(answer));
    }
  }

  static final class Ser implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
    @Override public ProducerRecord<byte[], byte[]> serialize(Tuple2<byte[], byte[]> e, KafkaSinkContext c, Long ts) { return new ProducerRecord<>("feedback", e.f0, e.f1); }
  }

  public static void main(String[] x) throws Exception {
    Configuration c = new Configuration();
    c.setString("execution.checkpointing.interval", "1s");
    c.setString("execution.checkpointing.mode", "AT_LEAST_ONCE");
    c.setString("execution.checkpointing.dir", "file://" + x[2]);
    c.setString("pipeline.object-reuse", "true");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, c);
    KafkaSource<byte[]> source = KafkaSource.<byte[]>builder().setBootstrapServers(x[0]).setGroupId(x[1]).setTopics("snapshots")
        .setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Value()).build();
    DataStream<byte[]> snapshots = env.fromSource(source, WatermarkStrategy.noWatermarks(), "snapshots");
    AsyncDataStream.unorderedWait(snapshots, new Enrich(x[3]), 30, TimeUnit.SECONDS, Integer.parseInt(x[4]))
        .returns(Types.TUPLE(BYTES, BYTES))
        .sinkTo(KafkaSink.<Tuple2<byte[], byte[]>>builder().setBootstrapServers(x[0]).setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .setRecordSerializer(new Ser()).setProperty("linger.ms", "1").build());
    env.execute("enrich");
  }
}
