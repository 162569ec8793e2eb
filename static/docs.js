// Draws the API's description with the vendored Swagger UI.
document.addEventListener("DOMContentLoaded", function () {
  "use strict";
  var place = document.getElementById("swagger-ui");
  window.SwaggerUIBundle({
    url: place.dataset.spec,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    tryItOutEnabled: true,
    persistAuthorization: false,
  });
});
